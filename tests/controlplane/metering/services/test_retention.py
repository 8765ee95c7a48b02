"""Events go after 35 days, but never before they are summed."""

from datetime import timedelta

import pytest

from controlplane.metering import services
from controlplane.metering.models import UsageEventRow, UsageHour
from tests.controlplane.metering.rows import HOUR, make_events, make_segment

pytestmark = pytest.mark.django_db


def test_old_events_go_and_their_hour_stays() -> None:
    services.ingest_segment(make_segment(make_events(1, 3)))
    later = HOUR + timedelta(days=36)

    assert services.delete_old_events(now=later) == 0
    services.recompute_stale_hours()
    assert services.delete_old_events(now=later) == 3

    assert not UsageEventRow.objects.exists()
    assert UsageHour.objects.get().requests == 3


def test_an_hour_of_events_goes_whole_or_stays_whole() -> None:
    services.ingest_segment(make_segment(make_events(1, 3)))
    services.recompute_stale_hours()

    within = HOUR + timedelta(days=35, minutes=30)

    assert services.delete_old_events(now=within) == 0
    assert services.delete_old_events(now=within + timedelta(minutes=30)) == 3
