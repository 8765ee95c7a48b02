"""Periodic work on operations."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from controlplane.operations import outbox, services, tasks
from controlplane.operations.models import OutboxEvent
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_sweep_delivered_twice_sends_once(sent_tasks: list[Any]) -> None:
    services.start(kind="t", subject=None, task="operations.tasks.sweep", actor=None)
    sent_tasks.clear()

    with time_machine.travel(timezone.now() + timedelta(seconds=31)):
        tasks.sweep()
        tasks.sweep()

    assert len(sent_tasks) == 1


def test_forgetting_twice_does_no_harm() -> None:
    tasks.forget_idempotency_keys()
    tasks.forget_idempotency_keys()


def test_old_events_are_forgotten() -> None:
    old, fresh = (outbox.emit("consort.test", subject=make_tenant()) for _ in range(2))
    OutboxEvent.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))

    tasks.forget_events()
    tasks.forget_events()

    assert list(OutboxEvent.objects.all()) == [fresh]
