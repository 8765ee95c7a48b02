"""Scenarios: stated in full, or taken from the fleet as it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from controlplane.planning import selectors
from controlplane.planning.errors import (
    FleetEmptyError,
    ScenarioInvalidError,
    ScenarioRetiredError,
)
from controlplane.planning.models import Scenario
from controlplane.serving.models import Pool
from routing.planner.problem import Problem, ProblemError, Target, Traffic, parse_problem

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetQuestion:
    """One pool with a load, on its own accelerators and, if wanted, on idle ones."""

    pool_id: UUID
    traffic: Mapping[str, Any]
    target: Mapping[str, Any] | None = None
    include_idle: bool = False


@transaction.atomic
def create_scenario(
    *,
    name: str,
    problem: Mapping[str, Any],
    actor: "User",
    note: str = "",
    simulated: bool = False,
) -> Scenario:
    """Store a scenario whose fleet is stated. Raises NotPermittedError, ScenarioInvalidError, or
    ValidationError that names the field."""
    permissions.require(actor, "planning.add_scenario")
    row = Scenario(
        name=name, note=note, problem=_checked(problem), created_by=actor, simulated=simulated
    )
    return _stored(row, actor)


@transaction.atomic
def create_from_fleet(
    *,
    name: str,
    question: FleetQuestion,
    actor: "User",
    note: str = "",
    simulated: bool = False,
) -> Scenario:
    """Store a scenario of a pool on the fleet as it is at this moment.

    Raises NotPermittedError, FleetEmptyError, ScenarioInvalidError or ValidationError.
    """
    permissions.require(actor, "planning.add_scenario")
    pool = Pool.objects.select_related("model").get(pk=question.pool_id)
    facts = selectors.fleet_facts([pool], include_idle=question.include_idle)
    if not facts.groups:
        raise FleetEmptyError(pool=pool.name)
    try:
        traffic = msgspec.convert(dict(question.traffic), Traffic)
        target = msgspec.convert(dict(question.target), Target) if question.target else None
        problem = Problem(
            groups=facts.groups,
            demands=(facts.demand(pool, traffic, target),),
            currency=settings.LEDGER_CURRENCY,
        )
    except (msgspec.ValidationError, ValueError) as error:
        raise ScenarioInvalidError(detail=str(error)) from error
    row = Scenario(
        name=name,
        note=note,
        origin=Scenario.Origin.FLEET,
        problem=_checked(msgspec.to_builtins(problem)),
        members=facts.members,
        created_by=actor,
        simulated=simulated,
    )
    return _stored(row, actor)


@transaction.atomic
def change_scenario(
    *,
    scenario_id: UUID,
    actor: "User",
    name: str | None = None,
    note: str | None = None,
    problem: Mapping[str, Any] | None = None,
) -> Scenario:
    """Change what is given; runs keep what they ran. Another problem is a stated one.

    Raises NotPermittedError, ScenarioRetiredError, ScenarioInvalidError or ValidationError.
    """
    row = _locked(scenario_id)
    permissions.require(actor, "planning.change_scenario", row)
    if row.retired_at is not None:
        raise ScenarioRetiredError(scenario=row.name)
    before = {"name": row.name, "note": row.note}
    row.name = row.name if name is None else name
    row.note = row.note if note is None else note
    if problem is not None:
        row.problem, row.members = _checked(problem), {}
        row.origin = Scenario.Origin.STATED
    row.full_clean()
    row.save()
    audit.record(
        actor=actor, action="scenario.change", subject=row, before=before,
        after={"name": row.name, "note": row.note, "problem": problem is not None},
    )  # fmt: skip
    outbox.emit("consort.scenario.changed", subject=row)
    return row


@transaction.atomic
def retire_scenario(*, scenario_id: UUID, actor: "User") -> Scenario:
    """Take a scenario from the lists; its runs and advice stay. A second call changes nothing."""
    row = _locked(scenario_id)
    permissions.require(actor, "planning.delete_scenario", row)
    if row.retired_at is None:
        row.retired_at = timezone.now()
        row.save(update_fields=["retired_at", "updated_at"])
        audit.record(actor=actor, action="scenario.retire", subject=row)
        outbox.emit("consort.scenario.retired", subject=row)
    return row


def _stored(row: Scenario, actor: "User") -> Scenario:
    row.full_clean()
    row.save(force_insert=True)
    audit.record(
        actor=actor, action="scenario.create", subject=row, after={"origin": str(row.origin)}
    )
    outbox.emit("consort.scenario.created", subject=row)
    return row


def _locked(scenario_id: UUID) -> Scenario:
    return Scenario.objects.select_for_update(no_key=True).get(pk=scenario_id)


def _checked(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The problem as plain values with every default written out."""
    try:
        plain: dict[str, Any] = msgspec.to_builtins(parse_problem(problem))
    except ProblemError as error:
        raise ScenarioInvalidError(detail=str(error)) from error
    return plain
