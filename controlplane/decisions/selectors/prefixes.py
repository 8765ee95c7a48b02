"""Where prefixes live, as the routers believed when they decided last."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.decisions.selectors.decisions import decisions_for_viewer
from controlplane.tenancy.models import User

WINDOW = timedelta(hours=1)
MOST_DECISIONS = 500
MOST_GROUPS = 8
MOST_ENDPOINTS = 24


@dataclass(slots=True)
class PrefixGroup:
    """Prompts that begin alike: shares of the latest one that endpoints hold."""

    key: str
    tenant: str
    at: datetime
    tokens: int
    """Prompt tokens of the group's sampled requests in the window."""
    requests: int
    latest: str
    """Endpoint that computed the latest prompt."""
    shares: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrefixMap:
    """The hottest groups against the endpoints that hold any of them."""

    groups: Sequence[PrefixGroup]
    endpoints: Sequence[str]
    group_count: int


def prefix_map(user: User, *, pool: str = "") -> PrefixMap:
    """The hottest prefix groups of the last hour's sampled decisions; tenants see none."""
    if user.tenant_id is not None:
        return PrefixMap(groups=(), endpoints=(), group_count=0)
    rows = decisions_for_viewer(user).filter(at__gt=timezone.now() - WINDOW).exclude(prefix="")
    if pool:
        rows = rows.filter(pool=pool)
    found: dict[str, PrefixGroup] = {}
    names = "prefix", "tenant", "at", "prompt_tokens", "held", "destination", "prefill"
    for key, tenant, at, tokens, held, destination, prefill in rows.values_list(*names)[
        :MOST_DECISIONS
    ]:
        group = found.get(key)
        if group is None:
            shares = {name: min(1.0, hit / (tokens or 1)) for name, hit in held.items()}
            latest = prefill or destination
            group = found[key] = PrefixGroup(key, tenant, at, 0, 0, latest, shares)
        group.tokens += tokens or 0
        group.requests += 1
    hottest = sorted(found.values(), key=lambda group: -group.tokens)[:MOST_GROUPS]
    endpoints = sorted({name for group in hottest for name in group.shares})[:MOST_ENDPOINTS]
    return PrefixMap(groups=hottest, endpoints=endpoints, group_count=len(found))
