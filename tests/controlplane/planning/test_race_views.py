"""What people do with a race: start, rate, stop."""

import pytest
from django.test import Client

from controlplane.planning.models import LiveRace
from controlplane.tenancy.models import User
from tests.factories import make_olga

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]

POLL = {"HTTP_HX_REQUEST": "true"}


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_slider_changes_the_rate_and_is_quiet_before_a_start() -> None:
    olga = make_olga()
    client = client_of(olga)

    before = client.post("/planning/race/rate", {"rate": 9}, **POLL)
    started = client.post("/planning/race/start", {"rate": 12})
    after = client.post("/planning/race/rate", {"rate": 17}, **POLL)
    wrong = client.post("/planning/race/rate", {"rate": 5000}, **POLL)

    assert [one.status_code for one in (before, started, after, wrong)] == [204, 302, 204, 422]
    assert LiveRace.objects.get(created_by=olga).rate_qps == 17


def test_a_rate_out_of_bounds_is_told_in_a_sentence() -> None:
    client = client_of(make_olga())

    answer = client.post("/planning/race/start", {"rate": 5000}, follow=True)

    assert "40" in answer.content.decode().split('class="notice', 1)[1][:400]
    assert not LiveRace.objects.exists()


def test_a_second_click_on_stop_does_no_harm() -> None:
    olga = make_olga()
    client = client_of(olga)
    client.post("/planning/race/start", {"rate": 5})

    answers = [client.post("/planning/race/stop") for _click in range(2)]

    assert [answer.status_code for answer in answers] == [302, 302]
    assert LiveRace.objects.get(created_by=olga).end == LiveRace.End.STOPPED


def test_afresh_is_another_race_at_the_slider_s_rate() -> None:
    olga = make_olga()
    client = client_of(olga)
    client.post("/planning/race/start", {"rate": 5})

    client.post("/planning/race/start", {"rate": 9, "afresh": "1"})

    assert [race.rate_qps for race in LiveRace.objects.filter(created_by=olga)] == [9, 5]
