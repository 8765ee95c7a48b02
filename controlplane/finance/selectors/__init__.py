"""Reads of finance: what things cost now, per role, per policy, and over time."""

from controlplane.finance.selectors.current import (
    HourlyCost,
    accelerator_prices,
    cost_per_hour,
)
from controlplane.finance.selectors.ledger import (
    asset_costs_for_viewer,
    classes_between,
    cumulative_cost,
    ledger_by_node,
    ledger_for_viewer,
    month_to_date,
    site_costs_for_viewer,
)
from controlplane.finance.selectors.policies import (
    PolicyComparison,
    PolicyRow,
    policy_comparison,
    pool_cost,
)
from controlplane.finance.selectors.units import UnitCost, unit_costs

__all__ = [
    "HourlyCost",
    "PolicyComparison",
    "PolicyRow",
    "UnitCost",
    "accelerator_prices",
    "asset_costs_for_viewer",
    "classes_between",
    "cost_per_hour",
    "cumulative_cost",
    "ledger_by_node",
    "ledger_for_viewer",
    "month_to_date",
    "policy_comparison",
    "pool_cost",
    "site_costs_for_viewer",
    "unit_costs",
]
