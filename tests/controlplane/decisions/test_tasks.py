"""The periodic tasks call their services and may run with nothing to do."""

import pytest

from controlplane.config.schedule import SCHEDULE
from controlplane.decisions import tasks
from controlplane.decisions.models import Decision
from tests.controlplane.decisions.conftest import LiveRouter
from tests.routing.servers.scripted import chat

pytestmark = pytest.mark.django_db


def test_pulling_stores_what_routers_recorded(live: LiveRouter) -> None:
    live.run(live.stage.ask(chat()))

    tasks.pull_decisions()
    tasks.delete_old_decisions()

    assert Decision.objects.count() == 1


def test_both_tasks_are_on_the_schedule() -> None:
    sent = {entry["task"] for entry in SCHEDULE.values()}

    assert {task.name for task in (tasks.pull_decisions, tasks.delete_old_decisions)} <= sent
