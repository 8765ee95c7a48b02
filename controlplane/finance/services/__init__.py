"""What changes rows of finance: inputs by people, the ledger by computation."""

from controlplane.finance.services.inputs import (
    AssetFigures,
    record_asset_cost,
    record_site_cost,
    revise_asset_cost,
)
from controlplane.finance.services.ledger import recompute_ledger, recompute_recent

__all__ = [
    "AssetFigures",
    "recompute_ledger",
    "recompute_recent",
    "record_asset_cost",
    "record_site_cost",
    "revise_asset_cost",
]
