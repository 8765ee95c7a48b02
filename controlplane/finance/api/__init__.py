"""Costs in the API: the ledger, its inputs, and figures computed from it."""

from controlplane.finance.api.figures import (
    NodeCostViewSet,
    PolicyComparisonViewSet,
    UnitCostViewSet,
)
from controlplane.finance.api.inputs import AssetCostViewSet, SiteCostPeriodViewSet
from controlplane.finance.api.ledger import LedgerHourViewSet

__all__ = [
    "AssetCostViewSet",
    "LedgerHourViewSet",
    "NodeCostViewSet",
    "PolicyComparisonViewSet",
    "SiteCostPeriodViewSet",
    "UnitCostViewSet",
]
