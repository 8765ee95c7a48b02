"""Reads of metering: who sees which usage, totals, latency, reconciliation, watermark."""

from controlplane.metering.selectors.counts import (
    ROUTERS_OWN,
    active_pool_hours,
    engine_tokens,
    evidence_of_pool,
    gateway_tokens,
    probe_tokens,
    router_addresses,
)
from controlplane.metering.selectors.latency import (
    LatencyFigures,
    latency_by_pool,
    prefix_hit_rate,
)
from controlplane.metering.selectors.policies import PolicyFigures, policy_figures
from controlplane.metering.selectors.usage import (
    GRANULARITIES,
    GROUPS,
    UsageTotals,
    reconciliations_for_viewer,
    refusals_for_viewer,
    routers_for_viewer,
    segments_for_viewer,
    usage_between,
    usage_grouped,
    usage_hours_for_viewer,
    watermark,
)

__all__ = [
    "GRANULARITIES",
    "GROUPS",
    "ROUTERS_OWN",
    "LatencyFigures",
    "PolicyFigures",
    "UsageTotals",
    "active_pool_hours",
    "engine_tokens",
    "evidence_of_pool",
    "gateway_tokens",
    "latency_by_pool",
    "policy_figures",
    "prefix_hit_rate",
    "probe_tokens",
    "reconciliations_for_viewer",
    "refusals_for_viewer",
    "router_addresses",
    "routers_for_viewer",
    "segments_for_viewer",
    "usage_between",
    "usage_grouped",
    "usage_hours_for_viewer",
    "watermark",
]
