"""The task computes the running hour and the one before it."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from controlplane.finance import tasks
from controlplane.finance.models import LedgerHour
from tests.controlplane.finance.rows import HOUR, make_asset_cost
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


def test_two_runs_in_one_hour_leave_two_hours() -> None:
    make_asset_cost(make_node())

    for minute in (10, 20):
        with time_machine.travel(HOUR + timedelta(minutes=minute), tick=False):
            tasks.recompute_recent()

    rows = LedgerHour.objects.order_by("hour")
    assert [(row.hour, row.seconds) for row in rows] == [
        (datetime(2026, 11, 30, 9, tzinfo=UTC), 3600),
        (HOUR, 1200),
    ]
