"""Records become rows once, outcomes complete them, shadow sums become hours."""

import json
from typing import Any

import pytest

from controlplane.decisions import services
from controlplane.decisions.models import Decision, RouterReading, ShadowHour
from tests.controlplane.decisions.conftest import LiveRouter
from tests.controlplane.decisions.records import Desk, document
from tests.routing.servers.scripted import chat

pytestmark = pytest.mark.django_db
OK = {
    "outcome": "ok", "status": 200, "ttft_seconds": 0.093, "cached_tokens": 640, "attempt": 1,
}  # fmt: skip


def test_a_record_becomes_a_row_with_what_was_expected_and_what_came() -> None:
    desk = Desk()
    line = desk.decide(outcome=OK)

    assert services.take_in(desk.page(), router="router-a") == 1

    row = Decision.objects.get()
    assert row.decision_id == line["id"]
    assert (row.tenant, row.pool, row.destination) == ("tenant-a", "chat", line["destination"])
    assert row.predicted_ttft_seconds == line["predicted"]["ttft_seconds"]
    assert (row.real_ttft_seconds, row.cached_tokens, row.outcome) == (0.093, 640, "ok")
    assert row.record["outcome"] == OK
    assert "number" not in row.record


def test_a_page_that_is_delivered_twice_changes_nothing() -> None:
    desk = Desk()
    desk.decide(outcome=OK)
    page = desk.page()
    services.take_in(page, router="router-a")
    shadow = ShadowHour.objects.values_list("asked", "regret_seconds").get()

    assert services.take_in(page, router="router-a") == 0

    assert Decision.objects.count() == 1
    assert ShadowHour.objects.values_list("asked", "regret_seconds").get() == shadow


@pytest.mark.lesson("T05")
def test_an_outcome_that_comes_with_a_later_page_completes_its_row() -> None:
    desk = Desk()
    line = desk.decide()
    services.take_in(desk.page(), router="router-a")
    assert Decision.objects.get().outcome == "open"

    desk.add({"outcome_of": line["id"], "pool": "chat", "outcome": OK})
    services.take_in(desk.page(), router="router-a")

    assert Decision.objects.get().outcome == "ok"


def test_a_refusal_has_its_code_and_no_prediction() -> None:
    desk = Desk(document(admission={"maximum_wait_seconds": 0.0}))
    desk.decide(model="other", text="x")

    services.take_in(desk.page(), router="router-a")

    row = Decision.objects.get()
    assert (row.outcome, row.status, row.refusal_code) == ("refused", 404, "model-not-found")
    assert row.uncached_tokens is None


def test_a_router_that_started_again_counts_from_the_start() -> None:
    desk, again = Desk(), Desk()
    desk.decide()
    again.decide()
    services.take_in(desk.page(started_at=100.0), router="router-a")

    services.take_in(again.page(started_at=200.0), router="router-a")

    assert Decision.objects.count() == 2
    assert ShadowHour.objects.get().asked == 2 * 7


def test_lines_that_left_the_ring_unread_are_counted() -> None:
    desk = Desk()
    for _ in range(5):
        desk.decide()
    desk.lines = desk.lines[3:]

    services.take_in(desk.page(left_out=7), router="router-a")

    reading = RouterReading.objects.get()
    assert (reading.missed, reading.left_out, reading.last_number) == (3, 7, 5)


def test_shadow_sums_are_added_as_differences() -> None:
    desk = Desk()
    desk.decide()
    services.take_in(desk.page(), router="router-a")
    desk.decide()
    services.take_in(desk.page(), router="router-a")

    hour = ShadowHour.objects.get()
    sums = desk.router.shadows.describe()["round-robin"]
    assert hour.asked == sums["asked"]
    assert hour.regret_seconds == pytest.approx(sums["regret_seconds"])


@pytest.mark.parametrize(
    "line",
    [
        {}, {"number": "x"}, {"number": 1}, {"number": 1, "id": 3}, {"number": -1, "id": "d"},
        {"number": 1, "id": "d", "request": 3, "predicted": [], "refusal": {"code": None}},
        {"number": 1, "id": "d", "recorded_at": 1e30, "attempt": -4, "margin_seconds": "x"},
        {"number": 1, "outcome_of": "nobody", "outcome": {"outcome": "weird"}},
        {"number": 1, "id": "d\0" * 400, "pool": "p\0" * 400, "document_version": 1e300},
    ],
)  # fmt: skip
def test_lines_that_make_no_sense_do_no_harm(line: dict[str, Any]) -> None:
    desk = Desk()
    desk.lines = [line]

    services.take_in(desk.page(), router="router-a")

    assert Decision.objects.count() <= 1


def test_decisions_come_from_a_real_router_without_any_prompt_text(live: LiveRouter) -> None:
    secret = [{"role": "user", "content": "a very secret word"}]
    live.run(live.stage.ask(chat(messages=secret, stream=True)))

    stored = services.pull_decisions()
    again = services.pull_decisions()

    assert (stored, again) == ({"r1": 1}, {"r1": 0})
    row = Decision.objects.get()
    assert row.outcome == "ok"
    assert row.real_ttft_seconds > 0
    assert "secret" not in json.dumps(row.record)
    assert ShadowHour.objects.get().asked == 1


def test_a_router_that_does_not_answer_is_noted(live: LiveRouter) -> None:
    live.run(live.stage.router.stop())

    assert services.pull_decisions() == {"r1": 0}
    assert "ConnectError" in RouterReading.objects.get().last_error
    live.run(live.stage.start_router())
