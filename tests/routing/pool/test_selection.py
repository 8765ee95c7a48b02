"""From prices to a choice, and what is predicted of it."""

import math

import pytest

from routing.core.record import record_of
from tests.routing.pool.builders import crowd, endpoint_dict, make_request, make_router, serve

LONG = "word " * 6000


def test_predictions_add_up_for_a_local_prompt() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request(LONG)

    predicted = router.decide(request, now=0.0).predicted

    tokens = request.parsed.prompt_tokens
    assert (predicted.hit_tokens, predicted.uncached_tokens) == (0, tokens)
    linear, attention = 0.92 * tokens, 0.08 * tokens * (tokens / 2) / 2048
    chunks = tokens / 2048 * 0.006
    assert predicted.ttft_seconds == pytest.approx(
        (linear + attention) / 20_000 + chunks + 0.006 + 0.010, rel=0.01
    )
    assert predicted.output_tokens == 100
    assert (predicted.wait_seconds, predicted.transfer_seconds) == (0, 0)


def test_a_hit_shortens_the_predicted_first_token() -> None:
    router = make_router(endpoint_dict("a"))
    cold = router.decide(make_request(LONG), now=0.0).predicted
    serve(router, make_request(LONG), now=0.0)

    warm = router.decide(make_request(LONG), now=9.0).predicted

    assert warm.hit_tokens + warm.uncached_tokens == cold.uncached_tokens
    assert warm.ttft_seconds < cold.ttft_seconds / 5


def test_a_pair_is_predicted_with_its_transfer() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    crowd(router, 20)
    request = make_request(LONG)

    decision = router.decide(request, now=1.0)

    moved = request.parsed.prompt_tokens * 163_840 / 12.5e9
    assert decision.prefill == "p"
    assert decision.predicted.transfer_seconds == pytest.approx(moved)
    assert decision.predicted.ttft_seconds > moved


def test_a_rule_that_does_not_follow_the_price_predicts_no_time_for_its_pair() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))

    # Idle and short: the price would compute it at d, the rule takes the pair.
    predicted = router.decide(make_request("short"), now=0.0, policy="random").predicted

    assert math.isnan(predicted.ttft_seconds)
    assert predicted.uncached_tokens > 0


def test_the_margin_is_what_the_runner_up_costs_more() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b", speed_class="slow"))

    decision = router.decide(make_request(), now=0.0)

    totals = {row["endpoint"]: row["terms"]["total"] for row in record_of(decision)["candidates"]}
    assert (decision.destination, decision.runner_up) == ("a", "b")
    assert decision.margin_seconds == pytest.approx(totals["b"] - totals["a"], abs=1e-5)


def test_a_single_candidate_has_no_runner_up() -> None:
    decision = make_router(endpoint_dict("a")).decide(make_request(), now=0.0)

    assert decision.runner_up is None
    assert decision.margin_seconds is None
    assert decision.fallbacks == ()


def test_several_choices_of_one_request_are_expected_together() -> None:
    router = make_router(endpoint_dict("a"))

    one = router.decide(make_request(LONG, max_tokens=50), now=0.0)
    request = make_request(LONG, max_tokens=50, n=4)
    four = router.decide(request, now=0.0)

    assert one.predicted.output_tokens == 50
    assert four.predicted.output_tokens == 200
