"""The role ledger: one open period per accelerator, no two that overlap, nothing edited."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.serving.errors import LedgerConflictError
from controlplane.serving.models import AssignedAccelerator, Pool, RoleAssignment
from controlplane.serving.plans import items_of
from controlplane.serving.services import PastAssignment, record_past_assignment
from controlplane.serving.services.ledger import switch_roles
from inventory.models import Node
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_assigned,
    make_draft,
    make_fleet_node,
    make_pool,
)

pytestmark = pytest.mark.django_db

START = datetime(2026, 1, 1, tzinfo=UTC)


def past(pool: Pool, node: Node, start: int, end: int) -> PastAssignment:
    return PastAssignment(
        pool=pool, node=node, accelerators=accelerators_of(node), role="both", reason="history",
        valid_from=START + timedelta(hours=start), valid_to=START + timedelta(hours=end),
        simulated=True,
    )  # fmt: skip


def test_an_accelerator_has_at_most_one_open_assignment() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    make_assigned(pool, node)
    (accelerator,) = accelerators_of(node)
    second = RoleAssignment.objects.create(
        pool=pool, node=node, role="decode", valid_from=START, reason="race"
    )

    with pytest.raises(IntegrityError, match="one_open"), transaction.atomic():
        AssignedAccelerator.objects.create(assignment=second, accelerator=accelerator)


def test_a_switch_of_some_accelerators_goes_on_with_the_rest_in_another_period() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=3)
    make_assigned(pool, node, role="prefill")
    one, *rest = accelerators_of(node)
    plan = make_draft(pool, role="decode", accelerator_ids=[one.pk])

    changed = switch_roles(plan=plan, items=items_of(plan.diff), reason="wave 1")

    assert changed == 1
    ended = RoleAssignment.objects.get(valid_to__isnull=False)
    opened = {row.role: row for row in RoleAssignment.objects.open()}
    assert ended.members.count() == 3
    assert not ended.members.filter(open=True).exists()
    assert {row.valid_from for row in opened.values()} == {ended.valid_to}
    assert list(opened["decode"].accelerators.all()) == [one]
    assert set(opened["prefill"].accelerators.all()) == set(rest)


def test_a_second_switch_changes_nothing() -> None:
    pool, node = make_pool(), make_fleet_node()
    plan = make_draft(pool, node)
    switch_roles(plan=plan, items=items_of(plan.diff), reason="wave 1")

    changed = switch_roles(plan=plan, items=items_of(plan.diff), reason="wave 1")

    assert changed == 0
    assert RoleAssignment.objects.count() == 1


def test_a_switch_from_another_role_than_planned_is_a_conflict() -> None:
    pool, node = make_pool(), make_fleet_node()
    plan = make_draft(pool, node, role="decode")
    make_assigned(pool, node, role="both")

    with pytest.raises(LedgerConflictError, match="is both in the role ledger"):
        switch_roles(plan=plan, items=items_of(plan.diff), reason="wave 1")


def test_a_release_closes_the_period_and_opens_none() -> None:
    pool, node = make_pool(), make_fleet_node()
    make_assigned(pool, node)
    plan = make_draft(pool, node, role="")

    switch_roles(plan=plan, items=items_of(plan.diff), reason="wave 1")

    assert not RoleAssignment.objects.open().exists()


def test_the_ledger_at_a_moment_takes_the_start_and_not_the_end() -> None:
    pool, node = make_pool(), make_fleet_node()
    first = record_past_assignment(past(pool, node, 0, 2))
    second = record_past_assignment(past(pool, node, 2, 4))

    moments = [START + timedelta(hours=hours) for hours in (0, 1.5, 2, 4)]

    found = [list(RoleAssignment.objects.at(moment)) for moment in moments]
    assert found == [[first], [first], [second], []]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=8))
def test_periods_of_one_accelerator_never_overlap(periods: list[tuple[int, int]]) -> None:
    with transaction.atomic():
        pool, node = make_pool(), make_fleet_node(accelerators=1)
        for start, length in periods:
            try:
                record_past_assignment(past(pool, node, start, start + length))
            except LedgerConflictError:
                continue

        rows = list(RoleAssignment.objects.filter(node=node).order_by("valid_from"))

        assert bool(rows) == bool(periods)
        for earlier, later in itertools.pairwise(rows):
            assert earlier.valid_to is not None
            assert earlier.valid_to <= later.valid_from
        transaction.set_rollback(True)
