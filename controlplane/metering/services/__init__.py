"""What changes rows of metering: ingest, recompute, reconcile."""

from controlplane.metering.services.hours import recompute_stale_hours, recompute_usage_hour
from controlplane.metering.services.ingest import Ingested, ingest_segment
from controlplane.metering.services.pull import (
    declare_router_lost,
    pull_router,
    pull_routers,
    skip_segment,
)
from controlplane.metering.services.reconcile import reconcile_hour, reconcile_recent
from controlplane.metering.services.retention import delete_old_events

__all__ = [
    "Ingested",
    "declare_router_lost",
    "delete_old_events",
    "ingest_segment",
    "pull_router",
    "pull_routers",
    "recompute_stale_hours",
    "recompute_usage_hour",
    "reconcile_hour",
    "reconcile_recent",
    "skip_segment",
]
