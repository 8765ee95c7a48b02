"""Tasks deliver; they may run twice, late, or for rows that are not there."""

import uuid

import pytest

from controlplane.operations.models import Operation
from controlplane.serving import services, tasks
from tests.controlplane.serving.factories import make_pool
from tests.factories import make_olga

pytestmark = pytest.mark.django_db


def test_a_message_about_a_row_that_is_gone_does_nothing() -> None:
    identifier = str(uuid.uuid4())

    tasks.reconcile_pool(identifier)
    tasks.follow_plan(identifier)
    tasks.reset_knowledge(identifier)

    assert not Operation.objects.exists()


def test_the_sweep_runs_every_active_pool_and_hears_every_router() -> None:
    pool = make_pool()

    tasks.reconcile_pools()
    tasks.poll_routers()

    pool.refresh_from_db()
    assert pool.reconciled_at is not None
    assert pool.documents.count() == 1


def test_a_reset_delivered_twice_ends_once() -> None:
    operation = services.reset_pool_knowledge(pool_id=make_pool().pk, actor=make_olga())

    tasks.reset_knowledge(str(operation.pk))
    tasks.reset_knowledge(str(operation.pk))

    operation.refresh_from_db()
    assert (operation.state, operation.attempt) == ("succeeded", 1)
