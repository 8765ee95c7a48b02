"""Tasks read, roll up and look for alerts without anybody's help."""

from datetime import timedelta

import pytest
import time_machine

from controlplane.telemetry import tasks
from controlplane.telemetry.models import Alert, EngineHour, ScrapeTarget, UtilisationHour
from tests.controlplane.telemetry.rows import HOUR, make_samples, make_target

pytestmark = pytest.mark.django_db


def test_the_hour_before_is_summed_for_a_few_minutes_more() -> None:
    target = make_target(created_at=HOUR - timedelta(minutes=10))
    make_samples(target, 5, start=HOUR - timedelta(minutes=1))
    make_samples(target, 3)

    with time_machine.travel(HOUR + timedelta(minutes=2), tick=False):
        tasks.roll_up()

    assert [row.samples for row in EngineHour.objects.order_by("hour")] == [5, 3]
    assert UtilisationHour.objects.count() == 2


def test_an_engine_that_is_away_becomes_an_alert() -> None:
    make_target(url="http://127.0.0.1:9/metrics", failing_since=HOUR)

    tasks.scrape_engines()
    tasks.detect_alerts()
    tasks.delete_old_samples()

    assert "ConnectError" in ScrapeTarget.objects.get().last_error
    assert Alert.objects.get().kind == "exporter_silent"
