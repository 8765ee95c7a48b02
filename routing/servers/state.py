"""What the parts of one router process share."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from routing.servers.decisions import DecisionRing
from routing.servers.documents import Directory
from routing.servers.http_parts import HttpRequest
from routing.servers.metrics import RouterMetrics
from routing.servers.relay import Relay
from routing.servers.spool import UsageSink
from routing.servers.upstream import Collected, UpstreamPool

if TYPE_CHECKING:
    from routing.servers.waiting import WaitingRoom


@dataclass(slots=True, kw_only=True)
class RequestCounts:
    """Answers since the start. A failure is an answer of 5xx or a stream that broke."""

    total: int = 0
    failed: int = 0
    by_status: Counter[int] = field(default_factory=Counter)

    def count(self, status: int) -> None:
        """An answer that no attempt accounts for; it is no failure of an engine."""
        self.total += 1
        self.by_status[status] += 1


@dataclass(slots=True, kw_only=True)
class RouterState:
    """Made once by the composition root, handed to every part."""

    name: str
    software: str
    started_at: float
    """Unix time."""
    directory: Directory
    spool: UsageSink
    upstreams: UpstreamPool
    metrics: RouterMetrics
    decisions: DecisionRing
    requests: RequestCounts = field(default_factory=RequestCounts)
    is_draining: bool = False
    rooms: dict[str, "WaitingRoom"] = field(default_factory=dict)
    """Where requests of a pool wait, by its name, once one had to."""
    leftovers: set[asyncio.Future[Collected]] = field(default_factory=set)
    """Prefill legs that still send KV although their request is answered."""
    closers: list[Callable[[], None]] = field(default_factory=list)
    """Called when requests have ended, before usage is written for the last time."""
    mark: str = ""
    """Names this process in what it hands out, where the router has several."""
    elsewhere: Callable[[str, HttpRequest], Awaitable[tuple[int, bytes]]] | None = None
    """Asks the process with another mark, and returns status and body."""
    streams: dict[tuple[str, str], set[Relay]] = field(default_factory=dict)
    """Streams under way by pool and endpoint."""
