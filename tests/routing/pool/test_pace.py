"""What requests teach about speed while they run, and at their end."""

from typing import Any

import pytest

from routing.core.lease import Lease
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

STEP = 0.019


def begun(router: PoolRouter, *, now: float = 0.0, **request: Any) -> Lease:
    asked = make_request("some words " * 300, **request)
    return router.begin(asked, router.decide(asked, now=now), now=now)


def row_of(router: PoolRouter, name: str = "a") -> dict[str, Any]:
    rows = {row["id"]: row for row in router.snapshot(now=0.0)["endpoints"]}
    found: dict[str, Any] = rows[name]
    return found


def test_a_long_answer_teaches_the_step_time_long_before_it_ends() -> None:
    router = make_router(endpoint_dict("a"))
    lease = begun(router, max_tokens=5000)
    router.first_token(lease, now=0.1)

    for token in range(400):
        router.tokens(lease, 1, now=0.1 + (token + 1) * STEP)

    assert lease.is_open
    assert row_of(router)["speeds"]["decode"]["step_seconds"] > 0.012


def test_an_answer_longer_than_expected_goes_on_weighing_on_its_endpoint() -> None:
    router = make_router(endpoint_dict("a"))
    lease = begun(router, max_tokens=4000)
    expected = lease.output_tokens
    router.first_token(lease, now=0.1)

    for token in range(expected + 10):
        router.tokens(lease, 1, now=0.1 + token * 0.01)

    table = router._known.table
    assert lease.outlived == 1
    assert lease.output_tokens == pytest.approx(1.5 * expected, abs=2)
    assert table.remaining_tokens[0] == lease.output_tokens - expected - 10
    router.end(lease, now=9.0, outcome="ok", prompt_tokens=900, completion_tokens=expected + 10)
    for column in ("remaining_tokens", "context_tokens", "private_tokens", "sequences"):
        assert getattr(table, column).tolist() == [0.0]


def test_what_the_client_allows_bounds_the_expectation() -> None:
    router = make_router(endpoint_dict("a"))
    lease = begun(router, max_tokens=60)
    router.first_token(lease, now=0.1)

    for token in range(60):
        router.tokens(lease, 1, now=0.1 + token * 0.01)

    assert lease.output_tokens == 60
    assert lease.outlived == 0


@pytest.mark.lesson("W24")
def test_a_fresh_process_is_warm_after_its_first_answer_and_its_class_has_learned() -> None:
    router = make_router(endpoint_dict("a"))
    router.apply(make_document(endpoint_dict("a", instance="2"), version=2), now=1.0)
    known = router._known
    guess = known.warm_up.seconds("fast")
    lease = begun(router, now=2.0)
    predicted = lease.decision.predicted.ttft_seconds

    router.first_token(lease, now=2.0 + predicted + 4.0)

    assert predicted > guess
    assert not known.table.has_cold
    assert known.warm_up.seconds("fast") == pytest.approx(guess + 0.3 * 4.0)


@pytest.mark.lesson("T05")
def test_predictions_meet_their_outcome_when_a_request_ends() -> None:
    router = make_router(endpoint_dict("a"))
    lease = begun(router)
    predicted = lease.decision.predicted

    router.first_token(lease, now=2 * predicted.ttft_seconds)
    end = 2 * predicted.ttft_seconds + 99 * predicted.tpot_seconds
    router.end(lease, now=end, outcome="ok", prompt_tokens=900, completion_tokens=100)

    errors = router.snapshot(now=end)["prediction_error_by_class"]["fast"]
    assert errors["ttft"] == {"mean_error": pytest.approx(0.5), "outcomes": 1}
    assert errors["tpot"] == {"mean_error": pytest.approx(0.0, abs=1e-3), "outcomes": 1}
    assert row_of(router)["predictions"] == errors


def test_a_whole_answer_teaches_both_phases() -> None:
    router = make_router(endpoint_dict("a"))
    before = row_of(router)["speeds"]

    for turn in range(60):
        lease = begun(router, now=turn * 30.0, id=f"r{turn}")
        predicted = lease.decision.predicted
        seconds = predicted.ttft_seconds + 100 * predicted.tpot_seconds
        router.end(
            lease, now=turn * 30.0 + max(seconds, 2.0), outcome="ok",
            prompt_tokens=900, cached_tokens=0, completion_tokens=100,
        )  # fmt: skip

    after = row_of(router)["speeds"]
    assert after["decode"]["step_seconds"] > 1.5 * before["decode"]["step_seconds"]
    assert after["prefill"]["samples"] == after["decode"]["samples"] == 60


@pytest.mark.lesson("W05")
def test_a_card_slower_than_its_sisters_is_a_finding_until_it_is_not() -> None:
    names = ["a", "b", "c"]
    router = make_router(*(endpoint_dict(name) for name in names))

    def run(begin: float, factor: float) -> list[dict[str, Any]]:
        for turn in range(90):
            name = names[turn % 3]
            now = begin + turn * 5.0
            others = frozenset(names) - {name}
            request = make_request(f"{now} " * 200, id=f"r{now}", max_tokens=200)
            decision = router.decide(request, now=now, exclude=others)
            lease = router.begin(request, decision, now=now)
            router.first_token(lease, now=now + 0.1)
            step = 0.007 * (factor if name == "b" else 1.0)
            router.end(
                lease, now=now + 0.1 + 199 * step, outcome="ok",
                prompt_tokens=400, cached_tokens=0, completion_tokens=200,
            )  # fmt: skip
        router.decide(make_request(), now=begin + 500.0)
        found: list[dict[str, Any]] = router.snapshot(now=begin + 500.0)["findings"]
        return found

    (told,) = run(0.0, 3.0)
    for begin in (1000.0, 2000.0, 3000.0):
        run(begin, 1.0)
    healed = run(4000.0, 1.0)

    assert (told["code"], told["endpoint"]) == ("slower-than-class", "b")
    assert "2 others of its class" in told["message"]
    assert healed == []
