"""What nodes and accelerators cost per hour at a moment."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.utils import timezone

from controlplane.finance.hours import HOUR, hour_cost
from controlplane.finance.money import PRICE_STEP, divided, rounded
from controlplane.finance.selectors.inputs import LedgerInputs, ledger_inputs
from inventory.models import Accelerator, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyCost:
    """Cost of a node for one full hour. Power is None where it is unknown."""

    depreciation: Decimal
    finance: Decimal
    power: Decimal | None
    power_source: str
    total: Decimal
    currency: str
    accelerators: int
    evidence: str
    """Where the price of the node comes from: contract, list_price or estimate."""

    @property
    def per_accelerator(self) -> Decimal | None:
        """Share of one accelerator; None for a node without any."""
        if not self.accelerators:
            return None
        return rounded(divided(self.total, Decimal(self.accelerators)), PRICE_STEP)


def cost_per_hour(
    node_ids: Iterable[UUID] | None = None, *, at: datetime | None = None
) -> dict[UUID, HourlyCost]:
    """Cost of the hour of a moment by node; a node without a cost is left out.

    A fixed number of queries for any number of nodes.
    """
    moment = at or timezone.now()
    hour = moment.replace(minute=0, second=0, microsecond=0)
    inputs = ledger_inputs(start=hour, end=hour + HOUR, now=moment, node_ids=node_ids)
    found = {node.pk: _hourly(inputs, node, hour, moment) for node in inputs.nodes}
    return {node: cost for node, cost in found.items() if cost is not None}


def accelerator_prices(accelerator_ids: Sequence[UUID]) -> dict[UUID, Decimal | None]:
    """Cost per hour of each accelerator, in the ledger's currency; None where nobody knows.

    The function that pool documents get their prices from.
    """
    rows = Accelerator.objects.filter(pk__in=accelerator_ids).values_list("pk", "node_id")
    nodes = dict(rows)
    costs = cost_per_hour(set(nodes.values()))
    return {
        accelerator: costs[nodes[accelerator]].per_accelerator
        if nodes.get(accelerator) in costs
        else None
        for accelerator in accelerator_ids
    }


def _hourly(
    inputs: LedgerInputs, node: Node, hour: datetime, moment: datetime
) -> HourlyCost | None:
    version = inputs.version_at(node.pk, moment)
    if version is None:
        return None
    terms = inputs.terms(node, version)
    if terms.retired_at is not None and terms.retired_at <= moment:
        return None
    site = inputs.site_at(node, hour)
    there = [
        row
        for row in inputs.accelerators.get(node.pk, ())
        if row.retired_at is None or row.retired_at > moment
    ]
    power = inputs.power_of(node.pk, version, hour, at=moment)
    cost = hour_cost(
        terms,
        start=hour,
        end=hour + HOUR,
        power=power,
        pue=site.pue,
        tariff_per_kwh=site.tariff_per_kwh if site.currency == version.currency else None,
    )
    return HourlyCost(
        depreciation=cost.depreciation,
        finance=cost.finance,
        power=cost.power,
        power_source="unknown" if cost.power is None else power.source,
        total=cost.total,
        currency=version.currency,
        accelerators=len(there),
        evidence=version.evidence,
    )
