"""What the broker says of itself."""

import pytest
from celery import current_app

from controlplane.operations import broker, tasks

pytestmark = pytest.mark.xdist_group("broker")


def test_messages_that_wait_are_counted(real_broker: str) -> None:
    before = broker.queue_depth()

    for _ in range(3):
        current_app.send_task(tasks.sweep.name)

    assert (before, broker.queue_depth()) == (0, 3)


def test_a_broker_that_is_away_has_no_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app.conf, "broker_read_url", "redis+socket:///nowhere/valkey.sock")

    assert broker.queue_depth() is None
