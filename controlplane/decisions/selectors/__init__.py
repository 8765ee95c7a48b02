"""Reads of routing: decisions, shadow policies, pairs, and which routers can be asked."""

from controlplane.decisions.selectors.decisions import (
    ShadowFigures,
    decisions_for_viewer,
    readings_for_viewer,
    record_for_viewer,
    shadow_figures,
    shadow_hours_for_viewer,
)
from controlplane.decisions.selectors.pairs import PairRow, pairs_for_viewer
from controlplane.decisions.selectors.prefixes import PrefixGroup, PrefixMap, prefix_map
from controlplane.decisions.selectors.routers import (
    document_content,
    port_with_pool,
    router_named,
    router_ports,
)

__all__ = [
    "PairRow",
    "PrefixGroup",
    "PrefixMap",
    "ShadowFigures",
    "decisions_for_viewer",
    "document_content",
    "pairs_for_viewer",
    "port_with_pool",
    "prefix_map",
    "readings_for_viewer",
    "record_for_viewer",
    "router_named",
    "router_ports",
    "shadow_figures",
    "shadow_hours_for_viewer",
]
