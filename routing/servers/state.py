"""What the parts of one router process share."""

from collections import Counter
from dataclasses import dataclass, field

from routing.servers.decisions import DecisionRing
from routing.servers.documents import Directory
from routing.servers.metrics import RouterMetrics
from routing.servers.spool import UsageSpool
from routing.servers.upstream import UpstreamPool


@dataclass(slots=True, kw_only=True)
class RequestCounts:
    """Answers since the start. A failure is an answer of 5xx or a stream that broke."""

    total: int = 0
    failed: int = 0
    by_status: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True, kw_only=True)
class RouterState:
    """Made once by the composition root, handed to every part."""

    name: str
    software: str
    started_at: float
    """Unix time."""
    directory: Directory
    spool: UsageSpool
    upstreams: UpstreamPool
    metrics: RouterMetrics
    decisions: DecisionRing
    requests: RequestCounts = field(default_factory=RequestCounts)
    is_draining: bool = False
