"""A change computed before anything happens: difference, waves, checks, effects, fingerprint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from controlplane.serving import deployments, figures, plans, selectors
from controlplane.serving.checks.base import blocking, run_checks
from controlplane.serving.errors import (
    AcceleratorsUnknownError,
    PlanBlockedError,
    PlanEmptyError,
    PlanExpiredError,
    PlanRoleRefusedError,
    PlanStaleError,
    PlanStateError,
    PoolRetiredError,
)
from controlplane.serving.models import ChangePlan, Pool, Role, Wave, Workload
from controlplane.serving.selectors.files import load_times
from inventory.models import Accelerator, Cluster

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

State = ChangePlan.State
LIFETIME = timedelta(hours=24)
GUARDS: Mapping[str, float] = {"max_error_share": 0.05, "min_requests": 20, "max_starts": 4}
"""Shipped guards; a pool with a TTFT target adds `ttft_p95_seconds`."""
_SERIAL_LOCK = 7_301_001
"""Advisory lock under which plan numbers are given, so that none is given twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What an operator asks for. `role` empty releases the accelerators."""

    pool_id: UUID
    role: str
    reason: str
    node_ids: Sequence[UUID] = ()
    accelerator_ids: Sequence[UUID] = ()
    accelerators_per_wave: int = 1
    floor_share: float = 0.5
    soak_seconds: float = 30.0
    drain_seconds: float = 60.0
    ready_seconds: float = 600.0
    prefetch_seconds: float = 7200.0
    guards: Mapping[str, float] = field(default_factory=dict)


@transaction.atomic
def draft_plan(wish: PlanInput, *, actor: "User") -> ChangePlan:
    """Compute and store a plan; nothing else changes.

    Raises NotPermittedError, PoolRetiredError, PlanRoleRefusedError, AcceleratorsUnknownError,
    PlanEmptyError, or ValidationError that names the field.
    """
    pool = Pool.objects.select_related("model").get(pk=wish.pool_id)
    permissions.require(actor, "serving.add_changeplan", pool)
    if pool.state == Pool.State.RETIRED:
        raise PoolRetiredError(pool=pool.name)
    if wish.role not in {"", *Role.values}:
        raise PlanRoleRefusedError(role=repr(wish.role), allowed=", ".join(Role.values))
    items = _items(wish)
    plan = _new_plan(wish, pool, items, actor)
    plan.checks = run_checks(plan)
    plan.full_clean(exclude=["operation"])
    plan.save(force_insert=True)
    waves = plans.waves_of(items, per_wave=plan.accelerators_per_wave)
    Wave.objects.bulk_create(
        Wave(plan=plan, position=position, items=[item.as_json() for item in wave])
        for position, wave in enumerate(waves, start=1)
    )
    audit.record(
        actor=actor, action="changeplan.draft", subject=plan, reason=plan.reason,
        after={"role": plan.role, "accelerators": len(items)},
    )  # fmt: skip
    return plan


@transaction.atomic
def propose_plan(*, plan_id: UUID, actor: "User") -> ChangePlan:
    """Ask others for approval.

    Raises NotPermittedError, PlanStateError, PlanExpiredError, PlanStaleError or PlanBlockedError.
    """
    plan = locked_plan(plan_id)
    permissions.require(actor, "serving.propose_changeplan", plan)
    require_state(plan, State.DRAFT)
    require_fresh(plan)
    plan.state, plan.proposed_at = State.PROPOSED, timezone.now()
    plan.save(update_fields=["state", "proposed_at", "updated_at"])
    audit.record(actor=actor, action="changeplan.propose", subject=plan, reason=plan.reason)
    outbox.emit("consort.changeplan.proposed", subject=plan)
    return plan


def locked_plan(plan_id: UUID) -> ChangePlan:
    """The plan, locked until the end of the transaction."""
    rows = ChangePlan.objects.select_for_update(no_key=True, of=("self",))
    return rows.select_related("pool__model").get(pk=plan_id)


def require_state(plan: ChangePlan, *states: str) -> None:
    """Raise PlanStateError unless the plan is in one of the states."""
    if plan.state not in states:
        needed = ", ".join(str(State(state).label) for state in states)
        raise PlanStateError(plan=plan.number, state=State(plan.state), needed=needed)


def require_fresh(plan: ChangePlan) -> None:
    """Raise PlanExpiredError, PlanStaleError or PlanBlockedError."""
    if plan.expires_at <= timezone.now():
        raise PlanExpiredError(
            plan=plan.number, expired_at=plan.expires_at.strftime("%Y-%m-%d %H:%M UTC")
        )
    difference = staleness(plan)
    if difference:
        raise PlanStaleError(plan=plan.number, pool=plan.pool.name, difference=difference)
    sentence = blocking(plan.checks)
    if sentence:
        raise PlanBlockedError(plan=plan.number, sentence=sentence)


def staleness(plan: ChangePlan) -> str:
    """Which parts of the state differ from the one the plan was made for; "" if none does."""
    state = _state(plan)
    if plans.fingerprint(state) == plan.fingerprint:
        return ""
    made_for = plan.effects.get("state_parts", {})
    parts = [
        name
        for name, value in state.items()
        if made_for.get(name) != plans.fingerprint({name: value})
    ]
    return ", ".join(parts) + "."


def _items(wish: PlanInput) -> list[plans.PlanItem]:
    accelerators = list(
        selectors.accelerators_of(node_ids=wish.node_ids, accelerator_ids=wish.accelerator_ids)
    )
    nodes = {accelerator.node_id for accelerator in accelerators}
    found = {accelerator.pk for accelerator in accelerators}
    missing = len(set(wish.accelerator_ids) - found) + len(set(wish.node_ids) - nodes)
    if not wish.node_ids and not wish.accelerator_ids:
        raise PlanEmptyError()
    if missing:
        raise AcceleratorsUnknownError(missing=missing)
    roles = {
        row.accelerator_id: row.assignment.role
        for row in selectors.open_roles(accelerator_ids=found)
    }
    # Engines that somebody else runs stay as they are, also inside a cluster that we act in.
    static = Cluster.Kind.STATIC.value
    adopted = set(
        Workload.objects.filter(accelerator__in=found, target=static).values_list(
            "accelerator_id", flat=True
        )
    )
    return [
        _item(
            accelerator,
            from_role=roles.get(accelerator.pk, ""),
            to_role=wish.role,
            target=static if accelerator.pk in adopted else accelerator.node.cluster.kind,
        )
        for accelerator in accelerators
    ]


def _item(accelerator: Accelerator, *, from_role: str, to_role: str, target: str) -> plans.PlanItem:
    node = accelerator.node
    return plans.PlanItem(
        accelerator=str(accelerator.pk),
        node=str(node.pk),
        hostname=node.hostname,
        slot=accelerator.slot,
        vendor=accelerator.vendor,
        accelerator_model=accelerator.model.slug,
        target=target,
        workload=deployments.engine_name(accelerator),
        from_role=from_role,
        to_role=to_role,
    )


def _new_plan(
    wish: PlanInput, pool: Pool, items: Sequence[plans.PlanItem], actor: "User"
) -> ChangePlan:
    guards = dict(GUARDS)
    if pool.slo_ttft_p95_seconds is not None:
        guards["ttft_p95_seconds"] = pool.slo_ttft_p95_seconds
    plan = ChangePlan(
        serial=_next_serial(),
        pool=pool,
        role=wish.role,
        author=actor,
        reason=wish.reason,
        diff=[item.as_json() for item in items],
        guards={**guards, **wish.guards},
        accelerators_per_wave=wish.accelerators_per_wave,
        floor_share=wish.floor_share,
        soak_seconds=wish.soak_seconds,
        drain_seconds=wish.drain_seconds,
        ready_seconds=wish.ready_seconds,
        prefetch_seconds=wish.prefetch_seconds,
        expires_at=timezone.now() + LIFETIME,
    )
    # Before anything divides by it or counts with it.
    plan.clean_fields(exclude=["fingerprint", "operation"])
    state = _state(plan)
    plan.fingerprint = plans.fingerprint(state)
    plan.effects = _effects(plan, items) | {
        "state_parts": {name: plans.fingerprint({name: value}) for name, value in state.items()}
    }
    return plan


def _state(plan: ChangePlan) -> dict[str, Any]:
    accelerators = [item.accelerator for item in plans.items_of(plan.diff)]
    return selectors.pool_state(plan.pool, accelerators)


def _next_serial() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SERIAL_LOCK])
    last = ChangePlan.objects.aggregate(last=Max("serial"))["last"]
    return 1 + int(last or 0)


def _effects(plan: ChangePlan, items: Sequence[plans.PlanItem]) -> dict[str, Any]:
    """Roles and modelled capacity before and after; a capacity that is not known is None."""
    before = {
        str(row.accelerator_id): row.assignment.role for row in selectors.open_roles(pool=plan.pool)
    }
    after = plans.roles_after(before, items)
    waves = plans.waves_of(items, per_wave=max(1, plan.accelerators_per_wave))
    return {
        "roles": {"before": plans.role_counts(before), "after": plans.role_counts(after)},
        "capacity": {
            "before": _capacity(plan.pool, before),
            "after": _capacity(plan.pool, after),
            "source": "modelled from data sheets",
        },
        "waves": len(waves),
        "load": load_times(plan.pool, {item.node for item in items if item.to_role}),
        "floor": plans.floor_count(len(before), floor_share=plan.floor_share),
        "lowest": plans.lowest_count(len(before), waves),
        "longest_seconds": len(waves)
        * (plan.drain_seconds + plan.ready_seconds + plan.soak_seconds),
    }


def _capacity(pool: Pool, roles: Mapping[str, str]) -> dict[str, float | None]:
    models = dict(Accelerator.objects.filter(pk__in=roles).values_list("pk", "model"))
    rows = Accelerator.objects.filter(pk__in=roles).select_related("model")
    speeds = {row.model_id: figures.prior(row.model, pool.model) for row in rows}
    prefill: float | None = 0.0
    decode: float | None = 0.0
    for accelerator, model in models.items():
        speed = speeds[model]
        role = roles[str(accelerator)]
        if role in {"prefill", "both"}:
            prefill = _add(prefill, speed.prefill_tokens_per_second if speed else None)
        if role in {"decode", "both"}:
            decode = _add(decode, figures.decode_tokens_per_second(speed) if speed else None)
    return {"prefill_tokens_per_second": prefill, "decode_tokens_per_second": decode}


def _add(total: float | None, part: float | None) -> float | None:
    return None if total is None or part is None else total + part
