"""Tasks after the commit."""

from typing import Any

import pytest
from celery import Celery
from django.db import transaction
from kombu.exceptions import OperationalError

from controlplane.common import jobs

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "controlplane.operations.tasks.sweep"


def test_a_task_waits_for_the_commit(sent_tasks: list[Any]) -> None:
    with transaction.atomic():
        jobs.after_commit("operations.tasks.sweep", 1, "two")
        assert sent_tasks == []

    assert sent_tasks == [(NAME, (1, "two"))]


def test_after_a_rollback_nothing_is_sent(sent_tasks: list[Any]) -> None:
    with transaction.atomic():
        jobs.after_commit("operations.tasks.sweep")
        transaction.set_rollback(True)

    assert sent_tasks == []


def test_the_whole_path_means_the_same(sent_tasks: list[Any]) -> None:
    jobs.after_commit(NAME)

    assert sent_tasks == [(NAME, ())]


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("serving.tasks.reconcile_pool", "controlplane.serving.tasks.reconcile_pool"),
        ("controlplane.serving.tasks.reconcile_pool", "controlplane.serving.tasks.reconcile_pool"),
        ("inventory.tasks.refresh", "inventory.tasks.refresh"),
    ],
)
def test_a_path_starts_at_the_root(path: str, whole: str) -> None:
    assert jobs.whole_path(path) == whole


def test_a_path_that_leads_nowhere_fails_the_caller() -> None:
    with pytest.raises(ImportError, match="swep"):
        jobs.after_commit("operations.tasks.swep")


@pytest.mark.parametrize("error", [OperationalError("away"), ConnectionRefusedError()])
def test_a_broker_that_is_away_costs_a_delay_and_no_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr(Celery, "send_task", refuse)

    jobs.after_commit("operations.tasks.sweep")

    assert "the sweep will" in caplog.text
