"""Metering in the API: usage, how far routers are read, and what could not be taken from them."""

from controlplane.metering.api.spool import (
    SegmentRefusalViewSet,
    UsageRouterViewSet,
    UsageSegmentViewSet,
)
from controlplane.metering.api.usage import ReconciliationViewSet, UsageHourViewSet, UsageViewSet

__all__ = [
    "ReconciliationViewSet",
    "SegmentRefusalViewSet",
    "UsageHourViewSet",
    "UsageRouterViewSet",
    "UsageSegmentViewSet",
    "UsageViewSet",
]
