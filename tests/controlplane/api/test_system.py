"""The installation itself."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from controlplane.operations import ticks
from tests.factories import make_api_client, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_without_a_tick_beat_is_degraded_and_its_age_unknown() -> None:
    body = make_api_client(make_user()).get("/api/v1/system").json()

    assert body["beat"] == {"at": None, "age_seconds": None}
    assert body["degraded"] == ["beat"]


def test_the_last_tick_has_an_age() -> None:
    now = timezone.now()
    with time_machine.travel(now - timedelta(seconds=12), tick=False):
        ticks.note("beat")
    client = make_api_client(make_user())

    with time_machine.travel(now, tick=False):
        body = client.get("/api/v1/system").json()

    assert body["beat"]["age_seconds"] == pytest.approx(12)
    assert body["degraded"] == []
    assert body["versions"]["postgresql"].startswith("18.")
