"""The fleet as it is, as the planner takes it: equal accelerators in groups, and who has them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from controlplane.serving import figures
from controlplane.serving import selectors as serving
from controlplane.serving.engines import launcher
from controlplane.serving.models import Pool
from controlplane.telemetry.models import Alert
from inventory.models import Accelerator, AcceleratorModel, Node
from routing.planner.problem import Card, Demand, Group, Roles, Shape, Target, Traffic

Prices = Callable[[Sequence[UUID]], Mapping[UUID, Decimal | None]]

SLOWEST = 0.05
"""Speeds below this share of the class are taken as this: an engine that hangs is no engine."""


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """Accelerators of some pools and idle ones, grouped."""

    groups: tuple[Group, ...]
    members: dict[str, list[str]]
    """Ids of accelerators by group, by host and slot."""
    roles: dict[str, dict[str, Roles]]
    """Of today, by pool and group."""

    def demand(self, pool: Pool, traffic: Traffic, target: Target | None = None) -> Demand:
        """What a pool asks of this fleet; its own targets unless others are given."""
        return Demand(
            pool=pool.slug,
            model=pool.model.slug,
            traffic=traffic,
            target=target or target_of(pool),
            shape=_shape(pool),
            now=self.roles.get(pool.slug, {}),
            may_split=pool.role_mode == Pool.RoleMode.DISAGGREGATED,
        )


@dataclass(frozen=True, slots=True)
class _Key:
    model: str
    price: Decimal | None
    speed: float
    per_node: int


def fleet_facts(pools: Sequence[Pool], *, include_idle: bool) -> FleetFacts:
    """Accelerators that are ready, of these pools and, if wanted, of no pool."""
    held = {
        row.accelerator_id: row.assignment
        for pool in pools
        for row in serving.open_roles(pool=pool).select_related("assignment__pool")
    }
    taken = set() if not include_idle else _held_by_anybody()
    rows = [row for row in _ready() if row.pk in held or (include_idle and row.pk not in taken)]
    keys = _keys(rows)
    names = _names(keys)
    refuses = {model.slug: _refusals(pools, model) for model in {row.model for row in rows}}
    members: dict[str, list[str]] = defaultdict(list)
    roles: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(_no_roles))
    models: dict[str, AcceleratorModel] = {}
    for row in rows:
        name = names[keys[row.pk]]
        members[name].append(str(row.pk))
        models[name] = row.model
        if row.pk in held:
            assignment = held[row.pk]
            roles[assignment.pool.slug][name][assignment.role] += 1
    groups = tuple(
        _group(name, key, models[name], len(members[name]), refuses[key.model])
        for key, name in names.items()
    )
    by_pool = {
        pool: {name: Roles(**counts) for name, counts in found.items()}
        for pool, found in roles.items()
    }
    return FleetFacts(groups, dict(members), by_pool)


def target_of(pool: Pool) -> Target:
    """The pool's own targets, and the planner's where it has none."""
    usual = Target()
    return Target(
        ttft_seconds=pool.slo_ttft_p95_seconds or usual.ttft_seconds,
        tpot_seconds=pool.slo_tpot_p95_seconds or usual.tpot_seconds,
    )


def _held_by_anybody() -> set[UUID]:
    return set(serving.open_roles().values_list("accelerator", flat=True))


def _no_roles() -> dict[str, int]:
    return {"prefill": 0, "decode": 0, "both": 0}


def _ready() -> list[Accelerator]:
    return list(
        Accelerator.objects.filter(state=Accelerator.State.READY, node__state=Node.State.READY)
        .select_related("model", "node")
        .order_by("model__slug", "node__hostname", "slot", "pk")
    )


def _keys(rows: Sequence[Accelerator]) -> dict[UUID, _Key]:
    """What must be equal for accelerators to be in one group."""
    prices: Prices = import_string(settings.ENDPOINT_PRICES)
    found = prices([row.pk for row in rows])
    speeds = _speeds()
    per_node: dict[tuple[UUID, str, Decimal | None, float], int] = defaultdict(int)
    for row in rows:
        per_node[_place(row, found, speeds)] += 1
    return {
        row.pk: _Key(row.model.slug, found.get(row.pk), speeds.get(row.pk, 1.0),
                     per_node[_place(row, found, speeds)])
        for row in rows
    }  # fmt: skip


def _place(
    row: Accelerator, prices: Mapping[UUID, Decimal | None], speeds: Mapping[UUID, float]
) -> tuple[UUID, str, Decimal | None, float]:
    return row.node_id, row.model.slug, prices.get(row.pk), speeds.get(row.pk, 1.0)


def _speeds() -> dict[UUID, float]:
    """Share of the class's speed of accelerators that an open alert calls slower."""
    alerts = Alert.objects.filter(
        kind=Alert.Kind.SLOWER_THAN_CLASS, resolved_at__isnull=True, accelerator__isnull=False
    )
    found: dict[UUID, float] = {}
    for accelerator, facts in alerts.values_list("accelerator", "facts"):
        value, median = facts.get("value"), facts.get("class_median")
        if accelerator is not None and value is not None and median:
            found[accelerator] = round(min(1.0, max(SLOWEST, value / median)), 2)
    return found


def _names(keys: Mapping[UUID, _Key]) -> dict[_Key, str]:
    """A name for each group: the model's, with a number where there are several."""
    names: dict[_Key, str] = {}
    counts: dict[str, int] = defaultdict(int)
    for key in keys.values():
        if key not in names:
            counts[key.model] += 1
            number = counts[key.model]
            names[key] = key.model if number == 1 else f"{key.model}-{number}"
    return names


def _group(
    name: str, key: _Key, model: AcceleratorModel, count: int, refuses: dict[str, str]
) -> Group:
    return Group(
        name=name,
        accelerator=model.slug,
        nodes=count // key.per_node,
        accelerators_per_node=key.per_node,
        speed=key.speed,
        price_per_hour=None if key.price is None else f"{key.price:.6f}",
        watts=model.tdp_watts,
        card=_card(model),
        refuses=refuses,
    )


def _card(model: AcceleratorModel) -> Card | None:
    found = figures.accelerator_figures(model)
    if found is None:
        return None
    return Card(
        peak_tflops=found.peak_tflops,
        memory_bytes=found.memory_bytes,
        bandwidth_bytes_per_second=found.bandwidth_bytes_per_second,
    )


def _shape(pool: Pool) -> Shape:
    model = pool.model
    return Shape(
        layers=model.layers,
        hidden=model.hidden,
        kv_bytes_per_token=model.kv_bytes_per_token,
        weight_bytes=model.weight_bytes,
        flops_per_token=model.flops_per_token,
        attention_flops_per_token_per_context_token=(
            model.attention_flops_per_token_per_context_token
        ),
        max_model_len=model.max_model_len,
    )


def _refusals(pools: Sequence[Pool], model: AcceleratorModel) -> dict[str, str]:
    """Models whose engine does not run on this vendor's accelerators, with its reason."""
    found: dict[str, str] = {}
    for pool in pools:
        verdict = launcher(pool.engine).support(
            vendor=model.vendor, precision=pool.model.precision, role="both"
        )
        if not verdict.supported:
            found[pool.model.slug] = str(verdict.sentence)
    return found
