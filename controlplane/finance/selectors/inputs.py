"""Everything that ledger hours are computed from, loaded once for many hours."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Q

from controlplane.finance.classes import ASSIGNED, TRANSITION, UNAVAILABLE, CostKey, Span
from controlplane.finance.depreciation import AssetTerms
from controlplane.finance.models import AssetCost, SiteCostPeriod
from controlplane.finance.power import Power, node_power
from controlplane.serving.models import AssignedAccelerator, Endpoint, Workload
from controlplane.telemetry.models import UtilisationHour
from inventory.models import Accelerator, Node
from inventory.models.words import Health


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """PUE and power price of a site; None is unknown."""

    pue: Decimal | None
    tariff_per_kwh: Decimal | None
    currency: str


@dataclass(slots=True)
class LedgerInputs:
    """Facts about some nodes in some period."""

    nodes: list[Node]
    versions: dict[UUID, list[AssetCost]]
    """By node, oldest first."""
    accelerators: dict[UUID, list[Accelerator]]
    spans: dict[UUID, list[Span]] = field(default_factory=lambda: defaultdict(list))
    """By accelerator."""
    site_periods: dict[tuple[UUID, date], SiteCostPeriod] = field(default_factory=dict)
    watts: dict[tuple[UUID, datetime], float] = field(default_factory=dict)
    """Measured power by accelerator and hour."""

    def version_at(self, node: UUID, moment: datetime) -> AssetCost | None:
        """Version of a node's cost that holds at a moment."""
        holding = [row for row in self.versions.get(node, ()) if row.valid_from <= moment]
        return holding[-1] if holding else None

    def terms(self, node: Node, version: AssetCost) -> AssetTerms:
        """Terms of a version; a node that was retired is off the books from then on."""
        ends = [moment for moment in (version.retired_at, node.retired_at) if moment is not None]
        return replace(terms_of(version), retired_at=min(ends, default=None))

    def lives(
        self, node: UUID, *, start: datetime, end: datetime
    ) -> list[tuple[Accelerator, datetime, datetime]]:
        """Accelerators of a node with their part of [start, end), which is not empty.

        A card that replaced another in its slot begins where the other was retired, so that a slot
        never counts twice.
        """
        begins: dict[int, datetime] = {}
        found = []
        for row in self.accelerators.get(node, ()):
            begin = max(start, begins.get(row.slot, start))
            finish = min(end, row.retired_at or end)
            if row.retired_at is not None:
                begins[row.slot] = row.retired_at
            if begin < finish:
                found.append((row, begin, finish))
        return found

    def power_of(self, node: UUID, version: AssetCost, hour: datetime, *, at: datetime) -> Power:
        """Power of a node in an hour, from the accelerators that it had at a moment."""
        there = [
            row
            for row in self.accelerators.get(node, ())
            if row.retired_at is None or row.retired_at >= at
        ]
        return node_power(
            measured_watts=[self.watts.get((row.pk, hour)) for row in there],
            tdp_watts=[row.model.tdp_watts for row in there],
            host_watts=version.host_watts,
            power_factor=version.power_factor,
        )

    def site_at(self, node: Node, moment: datetime) -> SiteFigures:
        """Figures of the month, or the site's own where the month has none."""
        site = node.cluster.site
        period = self.site_periods.get((site.pk, moment.date().replace(day=1)))
        if period is not None:
            return SiteFigures(period.pue, period.tariff_per_kwh, period.currency)
        return SiteFigures(site.pue, site.tariff_per_kwh, site.currency)


def terms_of(version: AssetCost) -> AssetTerms:
    """Plain values of a version for the arithmetic."""
    price = version.opening_book_value
    if price is None:
        price = version.capex + version.install + version.spares
    return AssetTerms(
        price=price,
        residual=version.residual,
        life_months=version.life_months,
        annual_rate=version.annual_rate,
        in_service_at=version.in_service_at,
        starts_at=version.valid_from if version.opening_book_value is not None else None,
        retired_at=version.retired_at,
    )


def ledger_inputs(
    *, start: datetime, end: datetime, now: datetime, node_ids: Iterable[UUID] | None = None
) -> LedgerInputs:
    """Facts about nodes with a cost, for hours in [start, end); a fixed number of queries."""
    costs = AssetCost.objects.filter(valid_from__lt=end)
    if node_ids is not None:
        costs = costs.filter(node__in=node_ids)
    versions: dict[UUID, list[AssetCost]] = defaultdict(list)
    for row in costs.order_by("node", "version"):
        versions[row.node_id].append(row)
    nodes = list(
        Node.objects.filter(pk__in=versions).select_related("cluster__site").order_by("hostname")
    )
    accelerators = _accelerators(nodes, start=start)
    inputs = LedgerInputs(nodes=nodes, versions=versions, accelerators=accelerators)
    _add_assignments(inputs, start=start, end=end, now=now)
    _add_unavailable(inputs)
    for period in SiteCostPeriod.objects.filter(
        site__in={node.cluster.site_id for node in nodes}, month__lt=end.date()
    ):
        inputs.site_periods[period.site_id, period.month] = period
    _add_watts(inputs, start=start, end=end)
    return inputs


def _accelerators(nodes: Sequence[Node], *, start: datetime) -> dict[UUID, list[Accelerator]]:
    found: dict[UUID, list[Accelerator]] = defaultdict(list)
    rows = (
        Accelerator.objects.filter(node__in=nodes)
        .filter(Q(retired_at__isnull=True) | Q(retired_at__gt=start))
        .select_related("model")
        .order_by("node", "slot", "pk")
    )
    for row in rows:
        found[row.node_id].append(row)
    return found


def _add_assignments(
    inputs: LedgerInputs, *, start: datetime, end: datetime, now: datetime
) -> None:
    """Assigned time, and the transition from a switch until the engine in the role was ready."""
    members = list(
        AssignedAccelerator.objects.filter(
            accelerator__node__in=inputs.nodes, assignment__valid_from__lt=end
        )
        .filter(Q(assignment__valid_to__isnull=True) | Q(assignment__valid_to__gt=start))
        .select_related("assignment__pool")
        .order_by("assignment__valid_from", "pk")
    )
    changed = {row.accelerator_id for row in members if not row.assignment.simulated}
    ready = _ready_times(changed)
    deployed = set(
        Workload.objects.filter(accelerator__in=changed).values_list("accelerator", flat=True)
    )
    for row in members:
        period = row.assignment
        spans = inputs.spans[row.accelerator_id]
        key = CostKey(ASSIGNED, period.pool.slug, period.role)
        spans.append(Span(key, period.valid_from, period.valid_to))
        if row.accelerator_id not in deployed or period.simulated:
            continue
        times = ready.get((row.accelerator_id, period.role), ())
        served_from = next((at for at in times if at >= period.valid_from), period.valid_to or now)
        transition = CostKey(TRANSITION, period.pool.slug)
        spans.append(Span(transition, period.valid_from, served_from))


def _ready_times(accelerators: Iterable[UUID]) -> dict[tuple[UUID, str], list[datetime]]:
    found: dict[tuple[UUID, str], list[datetime]] = defaultdict(list)
    rows = (
        Endpoint.objects.filter(
            workload__accelerator__in=list(accelerators), ready_at__isnull=False
        )
        .order_by("ready_at")
        .values_list("workload__accelerator", "role", "ready_at")
    )
    for accelerator, role, at in rows:
        if at is not None:
            found[accelerator, role].append(at)
    return found


def _add_unavailable(inputs: LedgerInputs) -> None:
    """Failed health and maintenance, as far back as the present state goes."""
    key = CostKey(UNAVAILABLE)
    for node in inputs.nodes:
        states = []
        if node.health == Health.FAILED:
            states.append(node.health_since)
        if node.state == Node.State.MAINTENANCE:
            states.append(node.state_since)
        for accelerator in inputs.accelerators.get(node.pk, ()):
            own = [accelerator.health_since] if accelerator.health == Health.FAILED else []
            inputs.spans[accelerator.pk] += [Span(key, since, None) for since in [*states, *own]]


def _add_watts(inputs: LedgerInputs, *, start: datetime, end: datetime) -> None:
    rows: Any = (
        UtilisationHour.objects.filter(
            accelerator__node__in=inputs.nodes,
            hour__gte=start,
            hour__lt=end,
            power_watts__isnull=False,
        )
        .order_by()
        .values_list("accelerator", "hour", "power_watts")
    )
    inputs.watts.update({(accelerator, hour): watts for accelerator, hour, watts in rows})
