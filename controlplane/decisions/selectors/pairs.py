"""Can prefill endpoints hand KV to decode endpoints, at which cost, across which borders?"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from controlplane.common import permissions
from controlplane.serving.models import Endpoint
from controlplane.tenancy.models import User
from routing.core.document import KvContract
from routing.core.pairing import pair


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One prefill endpoint to one decode endpoint."""

    pool: str
    prefill: str
    decode: str
    verdict: str
    reason: str
    staging: str | None
    missing: tuple[str, ...]
    seconds_per_1000_tokens: float | None
    crosses_site: bool
    crosses_jurisdiction: bool


MOST_PAIRS = 2000


def pairs_for_viewer(user: User, *, pool: str = "") -> list[PairRow]:
    """Pairs of ready endpoints, at most MOST_PAIRS; tenants see none."""
    rows = permissions.restrict(Endpoint.objects.all(), user, "serving.view_endpoint")
    rows = rows.filter(state=Endpoint.State.READY).select_related(
        "pool__model", "node__cluster__site", "workload"
    )
    if pool:
        rows = rows.filter(pool__slug=pool)
    found = [row for row in rows.order_by("pool__slug", "pk") if row.kv_contract]
    pairs = _pairs(found)
    return [row for row, _ in zip(pairs, range(MOST_PAIRS), strict=False)]


def _pairs(endpoints: list[Endpoint]) -> Iterator[PairRow]:
    for prefill in endpoints:
        for decode in endpoints:
            is_pair = (prefill.role, decode.role) == ("prefill", "decode")
            if is_pair and prefill.pool_id == decode.pool_id:
                yield _pair(prefill, decode)


def _pair(prefill: Endpoint, decode: Endpoint) -> PairRow:
    verdict = pair(
        msgspec.convert(prefill.kv_contract, KvContract),
        msgspec.convert(decode.kv_contract, KvContract),
        kv_bytes_per_token=prefill.pool.model.kv_bytes_per_token,
    )
    sites = prefill.node.cluster.site, decode.node.cluster.site
    return PairRow(
        pool=prefill.pool.slug,
        prefill=prefill.workload.name,
        decode=decode.workload.name,
        verdict=verdict.verdict,
        reason=verdict.reason,
        staging=verdict.staging,
        missing=verdict.missing,
        seconds_per_1000_tokens=verdict.seconds_per_1000_tokens,
        crosses_site=sites[0].pk != sites[1].pk,
        crosses_jurisdiction=sites[0].jurisdiction != sites[1].jurisdiction,
    )
