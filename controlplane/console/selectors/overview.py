"""What the first page shows: capacity, utilisation by vendor, what needs a person."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta

from django.db.models import Count, F, FloatField, Q, Sum

from controlplane.common import permissions
from controlplane.console.selectors.fleet import nodes_for, roles_by_model
from controlplane.operations.models import BeatTick
from controlplane.serving.models import AssignedAccelerator, ChangePlan, Endpoint, Router
from controlplane.telemetry.models import Alert, UtilisationHour
from controlplane.tenancy.models import User
from inventory import selectors as inventory
from inventory.models import Accelerator, AcceleratorModel, Node
from inventory.models.words import Health
from inventory.selectors.capacity import Counts

SILENT_SECONDS = 15.0
"""A router that was not heard for longer is shown as unknown."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The strip for accelerators and for nodes, and what costs money without serving."""

    accelerators: Counts
    nodes: Counts
    reserved_not_healthy: Sequence[str]
    """Names of such accelerators, node/slot."""
    healthy_not_reserved: Sequence[tuple[str, int]]
    """Name of an accelerator model and how many of it."""


@dataclass(slots=True)
class VendorRow:
    """One accelerator model in the table of utilisation; None is no data."""

    vendor: str
    model: str
    accelerators: int = 0
    roles: dict[str, int] = field(default_factory=dict)
    utilisation: float | None = None
    memory: float | None = None
    power_watts: float | None = None
    with_data: int = 0
    """Accelerators with data in the period."""
    coverage: float | None = None
    not_scraped_since: datetime | None = None
    sources: list[str] = field(default_factory=list)


_ACTIVE = (Endpoint.State.READY, Endpoint.State.DRAINING)


def capacity(user: User) -> Capacity:
    """Counts over the person's accelerators and nodes; five queries."""
    held = set(
        AssignedAccelerator.objects.filter(open=True).values_list("accelerator_id", flat=True)
    )
    live = Endpoint.objects.filter(state__in=_ACTIVE)
    active = set(live.values_list("workload__accelerator_id", flat=True))
    names = dict(AcceleratorModel.objects.values_list("slug", "name"))
    # A node holds one model, so counts by model sum up to counts of all.
    groups = inventory.capacity(user, group_by=("model",), reserved=held, active=active)
    sick = inventory.accelerators_for_viewer(user).filter(pk__in=held).exclude(state="retired")
    sick = sick.exclude(Q(("effective_health", Health.HEALTHY)))
    return Capacity(
        accelerators=_sum([group.accelerators for group in groups]),
        nodes=_sum([group.nodes for group in groups]),
        reserved_not_healthy=[f"{row.node.hostname}/{row.slot}" for row in sick[:100]],
        healthy_not_reserved=[
            (names[group.key["model"]], group.accelerators.healthy_not_reserved)
            for group in groups
            if group.accelerators.healthy_not_reserved
        ],
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    names = [field.name for field in fields(Counts)]
    return Counts(**{name: sum(getattr(count, name) for count in counts) for name in names})


def utilisation_by_vendor(user: User) -> list[VendorRow]:
    """One row per accelerator model, means of the newest full hours weighted by data; four queries.

    The hour that runs and the one before count, so that the table is filled right after the hour.
    """
    roles = roles_by_model(user)
    models = AcceleratorModel.objects.filter(slug__in=roles).order_by("vendor", "name")
    rows = {
        model.slug: VendorRow(
            vendor=model.vendor, model=model.name, roles=roles[model.slug],
            accelerators=sum(roles[model.slug].values()),
        )
        for model in models
    }  # fmt: skip
    since = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    _add_means(rows, since)
    _add_silence(rows)
    return sorted(rows.values(), key=lambda row: row.roles.get("unassigned", 0) > 0)


def _add_means(rows: dict[str, VendorRow], since: datetime) -> None:
    weight = F("samples")
    known = UtilisationHour.objects.filter(hour__gte=since, samples__gt=0).order_by()
    sums = known.values("accelerator__model__slug").annotate(
        used=Sum(F("utilisation") * weight, output_field=FloatField()),
        memory=Sum(F("memory_usage") * weight, output_field=FloatField()),
        power=Sum(F("power_watts") * weight, output_field=FloatField()),
        weight=Sum("samples", filter=Q(utilisation__isnull=False)),
        memory_weight=Sum("samples", filter=Q(memory_usage__isnull=False)),
        power_weight=Sum("samples", filter=Q(power_watts__isnull=False)),
        expected=Sum("expected_samples"),
        devices=Count("accelerator", distinct=True),
    )
    for found in sums:
        row = rows.get(found["accelerator__model__slug"])
        if row is None:
            continue
        row.utilisation = _ratio(found["used"], found["weight"])
        row.memory = _ratio(found["memory"], found["memory_weight"])
        row.power_watts = _ratio(found["power"], found["power_weight"])
        row.coverage = _ratio(found["weight"], found["expected"])
        row.with_data = found["devices"]


def _ratio(value: float | None, weight: float | None) -> float | None:
    return value / weight if value is not None and weight else None


def _add_silence(rows: dict[str, VendorRow]) -> None:
    since = datetime.now(UTC) - timedelta(hours=3)
    silent = UtilisationHour.objects.filter(hour__gte=since, not_scraped_since__isnull=False)
    for model, at in silent.order_by("hour").values_list(
        "accelerator__model__slug", "not_scraped_since"
    ):
        row = rows.get(model)
        if row is not None and row.utilisation is None:
            row.not_scraped_since = at


def newest_plans(user: User, *, limit: int = 5) -> list[ChangePlan]:
    """The newest change plans that the person may see."""
    rows = ChangePlan.objects.select_related("pool", "author").order_by("-serial")
    return list(permissions.restrict(rows, user, "serving.view_changeplan")[:limit])


def routers_for(user: User) -> list[Router]:
    """Routers that the person may see."""
    return list(permissions.restrict(Router.objects.all(), user, "serving.view_router"))


def sick_accelerators(user: User, *, limit: int = 10) -> list[Accelerator]:
    """Accelerators that are degraded or failed, longest first."""
    rows = Accelerator.objects.filter(health__in=[Health.DEGRADED, Health.FAILED])
    rows = rows.filter(node__in=nodes_for(user).values("pk")).exclude(state="retired")
    return list(rows.select_related("node").order_by("health_since")[:limit])


def unknown_nodes(user: User, *, limit: int = 10) -> list[Node]:
    """Delivered nodes whose health nobody knows, longest first."""
    rows = (
        nodes_for(user)
        .filter(Q(("effective_health", Health.UNKNOWN)))
        .exclude(state__in=Node.NOT_DELIVERED)
    )
    return list(rows.order_by("health_since")[:limit])


def open_alerts(user: User, *, limit: int = 10) -> list[Alert]:
    """What the figures say and nobody resolved yet, longest first."""
    rows = Alert.objects.filter(resolved_at__isnull=True).select_related("node", "accelerator")
    rows = rows.filter(node__in=nodes_for(user).values("pk"))
    return list(rows.order_by("since")[:limit])


def last_tick() -> datetime | None:
    """When beat's last tick was worked off."""
    return BeatTick.objects.order_by("-at").values_list("at", flat=True).first()
