"""Beat's pulse."""

import pytest
from django.utils import timezone

from controlplane.operations import tasks, ticks

pytestmark = pytest.mark.django_db


def test_without_a_tick_there_is_no_time() -> None:
    assert ticks.last("beat") is None


def test_the_task_writes_the_time() -> None:
    before = timezone.now()

    tasks.tick()
    tasks.tick()

    assert ticks.last("beat") >= before
