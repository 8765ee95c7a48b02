"""The race as its page shows it: states, the finding, rows; and its views."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.console import racepage
from controlplane.operations.models import Operation
from controlplane.planning import board, services
from controlplane.planning.models import LiveRace
from controlplane.tenancy.models import Role
from routing.simulator.live.duel import Side, View
from routing.simulator.live.meter import Load, Reading
from tests.factories import make_ben, make_olga, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]

POLL = {"HTTP_HX_REQUEST": "true"}
FRAGMENT_BYTES = 21_000
"""The whole moving part of the page, six charts and forty bars, each second."""


def make_reading(at: float, **changes: Any) -> Reading:
    known = {
        "ttft_p50": 0.5, "ttft_p90": 2.5, "output_tokens_per_s": 9000.0, "goodput_rps": 8.25,
        "prefix_hit_rate": 0.4, "cost_per_million_output": Decimal("1.2345"), "running": 5,
        "waiting": 2,
    }  # fmt: skip
    return Reading(at=at, **(known | changes))


def make_loads(*, waiting: int) -> tuple[Load, ...]:
    return tuple(
        Load(endpoint=f"{kind}-{place}", speed_class=kind, running=40, waiting=waiting)
        for kind, count in (("nvidia-h100-nvl", 4), ("amd-mi325x", 8), ("intel-gaudi3", 8))
        for place in range(count)
    )


def make_view(at: float = 300.0, *, many: int = 61, rate_since: float = 0.0, **ours: Any) -> View:
    moments = [at - 5.0 * back for back in reversed(range(many))]

    def side(policy: str, **changes: Any) -> Side:
        readings = tuple(make_reading(moment, **changes) for moment in moments)
        loads = make_loads(waiting=30 if policy == "random" else 0)
        return Side(policy=policy, readings=readings, loads=loads, sent=10, answered=9, failed=1)

    return View(
        at=at, rate_qps=20.0, rate_since=rate_since, currency="USD",
        sides=(side("random"), side("consort", **ours)), price_per_hour=Decimal("37.16"),
    )  # fmt: skip


def make_race(view: View | None = None, **changes: Any) -> LiveRace:
    race = services.start_race(actor=make_olga(), rate_qps=20)
    Operation.objects.filter(pk=race.operation_id).update(state=Operation.State.RUNNING)
    LiveRace.objects.filter(pk=race.pk).update(begun_at=timezone.now(), **changes)
    if view is not None:
        show(race, view)
    return LiveRace.objects.select_related("operation").get(pk=race.pk)


def show(race: LiveRace, view: View) -> board.Snapshot:
    snapshot = board.Snapshot(written_at=timezone.now(), pace=4.0, view=view)
    board.publish(race.pk, snapshot)
    return snapshot


def test_a_worker_that_is_silent_is_told_from_one_that_runs() -> None:
    race, now = make_race(), timezone.now()
    snapshot = show(race, make_view())

    assert racepage.state_of(race, snapshot, now) == "running"
    assert racepage.state_of(race, snapshot, now + timedelta(seconds=6)) == "silent"
    assert racepage.state_of(race, None, now + timedelta(seconds=6)) == "silent"
    assert racepage.state_of(None, None, now) == "none"


def test_the_finding_names_both_sides_and_waits_for_a_full_window() -> None:
    told = racepage.page_of(
        board.Snapshot(
            written_at=timezone.now(), pace=4.0, view=make_view(ttft_p90=0.13, goodput_rps=20.0)
        )
    ).finding

    assert told.startswith("At 20 requests/s the same 20 accelerators answer 20.0 requests/s")
    assert "instead of 8.2, and" in told or "instead of 8.3, and" in told
    assert "within 0.13 s instead of 2.50 s" in told


@pytest.mark.parametrize(
    ("at", "many", "ours"), [(0.5, 0, {}), (15.0, 5, {}), (300.0, 9, {"ttft_p90": None})]
)
def test_nothing_is_found_where_something_is_unknown(
    at: float, many: int, ours: dict[str, Any]
) -> None:
    view = make_view(at, many=many, **ours)

    shown = racepage.page_of(board.Snapshot(written_at=timezone.now(), pace=1.0, view=view))

    assert shown.finding == ""
    assert len(shown.charts) == 6
    assert all(chart.drawing for chart in shown.charts)


@pytest.mark.parametrize(("rate_since", "is_told"), [(270.0, True), (271.0, False)])
def test_sides_are_compared_once_the_rate_held_for_a_window(
    rate_since: float, is_told: bool
) -> None:
    view = make_view(300.0, rate_since=rate_since)

    told = racepage.page_of(board.Snapshot(written_at=timezone.now(), pace=1.0, view=view)).finding

    assert told.startswith("At 20 requests/s") is is_told
    assert told.startswith("The rate has just changed.") is not is_told


def test_who_may_only_look_sees_who_may_start(client_of: Callable[..., Client]) -> None:
    page = client_of(make_user("vera", Role.READONLY)).get("/race").content.decode()

    assert "takes the permission planning.run_scenario" in page
    assert "Start the race" not in page


def test_rows_are_the_drawn_numbers_of_both_sides() -> None:
    head, *rows = racepage.rows_of(make_view(many=4))

    assert len(rows) == 8
    assert all(len(row) == len(head) for row in rows)
    assert {row[1] for row in rows} == {"random", "consort"}


def test_a_poll_answers_with_figures_then_304_then_the_next_ones(
    client_of: Callable[..., Client],
) -> None:
    race = make_race(make_view())
    client = client_of(race.created_by)
    page = client.get("/race").content.decode()
    tag = page.split('"If-None-Match": "')[1].split('"')[0]
    known = {**POLL, "HTTP_IF_NONE_MATCH": tag}

    with CaptureQueriesContext(connection) as captured:
        unchanged = client.get("/race?shown=running", **known)
    show(race, make_view(305.0))
    changed = client.get("/race?shown=running", **known)

    assert unchanged.status_code == 304
    assert len(captured) <= 4
    assert changed.status_code == 200
    assert b'id="race-actions"' not in changed.content
    assert len(changed.content) < FRAGMENT_BYTES


def test_an_ended_race_stops_the_polls_and_changes_the_buttons(
    client_of: Callable[..., Client],
) -> None:
    race = make_race(make_view())
    client = client_of(race.created_by)
    client.post("/planning/race/stop")

    answer = client.get("/race?shown=running", **POLL)
    again = client.get("/race")

    assert answer.status_code == 286
    assert b'id="race-actions" hx-swap-oob="true"' in answer.content
    assert b"The race was stopped." in answer.content
    assert b"Start again" in again.content
    assert b"every 1s" not in again.content


def test_people_of_a_tenant_see_neither_page_nor_figures_nor_entry(
    client_of: Callable[..., Client],
) -> None:
    make_race(make_view())
    client = client_of(make_ben())

    statuses = [client.get(path).status_code for path in ("/race", "/race.csv")]
    started = client.post("/planning/race/start", {"rate": 5})

    assert statuses == [403, 403]
    assert started.status_code in {302, 403}
    assert LiveRace.objects.count() == 1
    assert b'href="/race"' not in client.get("/").content


def test_figures_come_as_csv(client_of: Callable[..., Client]) -> None:
    race = make_race(make_view(many=2))
    client = client_of(race.created_by)

    lines = client.get("/race.csv").content.decode().splitlines()

    assert lines[0].startswith("virtual_seconds,policy,ttft_p50")
    assert len(lines) == 5
    assert client_of(make_olga()).get("/race.csv").status_code == 404


@pytest.mark.parametrize("end", ["lost", "unclaimed", "failed", "unwatched", "time"])
def test_each_end_has_its_words(client_of: Callable[..., Client], end: str) -> None:
    race = make_race(ended_at=timezone.now(), end=end)
    Operation.objects.filter(pk=race.operation_id).update(error={"detail": "It broke."})

    text = client_of(race.created_by).get("/race").content.decode()

    assert 'class="notice' in text
    assert "Start again" in text
