"""Advice: what is chosen, why, and that the same question has the same answer."""

import msgspec
import pytest

from routing.planner.accuracy import MODEL_ERROR
from routing.planner.advice import Plan
from routing.planner.problem import Problem
from routing.planner.search import advise, gain_over_now, present_load
from routing.planner.trial import Cancelled
from tests.routing.planner.fleets import Roles, Target, demand, group, problem

FEW = 600


def plan_of(asked: Problem, seed: int = 1) -> Plan:
    return advise(asked, seed=seed, requests=FEW)


def test_equal_questions_have_equal_answers() -> None:
    asked = problem(group(accelerators_per_node=2))

    assert msgspec.json.encode(plan_of(asked)) == msgspec.json.encode(plan_of(asked))


def test_a_pool_that_meets_its_targets_keeps_its_roles_and_says_why_not_to_split() -> None:
    now = {"amd-mi325x": Roles(both=4)}
    asked = problem(demands=(demand(2.0, now=now),))

    (advice,) = plan_of(asked).pools

    assert advice.verdict == "keep"
    assert advice.chosen is not None
    assert advice.chosen.kind == "now"
    assert advice.chosen.moves == 0
    codes = [reason.code for reason in advice.reasons]
    assert codes[0] == "meets-target"
    assert "do-not-split" in codes
    assert "hand-over-cost" in codes
    assert gain_over_now(advice) == 0.0


def test_a_bad_split_is_given_up() -> None:
    # Seven prefill for one decode engine: long answers wait for that one.
    now = {"amd-mi325x": Roles(prefill=7, decode=1)}
    asked = problem(
        group(accelerators_per_node=8),
        demands=(demand(90.0, now=now, lengths={"prompt_tokens": 500, "output_tokens": 200}),),
    )

    (advice,) = advise(asked, seed=1, requests=FEW).pools

    assert advice.verdict in {"both", "split"}
    assert advice.chosen is not None
    gain = gain_over_now(advice)
    assert gain is not None
    assert gain >= 0.10


def test_no_split_gives_decode_to_a_vendor_too_slow_for_the_target() -> None:
    slow = group("intel-gaudi3", speed=0.25, accelerators_per_node=2)
    fast = group(accelerators_per_node=2)
    # A slow engine's empty step takes 36 ms, so it keeps this target at no rate.
    asked = problem(fast, slow, demands=(demand(1.0, target=Target(tpot_seconds=0.03)),))

    (advice,) = plan_of(asked).pools

    assert advice.chosen is not None
    options = (advice.chosen, *advice.alternatives)
    splits = [option for option in options if option.kind == "split"]
    assert splits
    for split in splits:
        assert {share.group for share in split.placement if share.decode} == {"amd-mi325x"}
    assert advice.chosen.outcome is not None
    assert advice.chosen.outcome.good_share >= 0.9


def test_a_unified_pool_is_not_split() -> None:
    asked = problem(demands=(demand(may_split=False),))

    (advice,) = plan_of(asked).pools

    assert advice.verdict == "both"
    assert all(option.kind != "split" for option in advice.alternatives)
    assert "split-not-allowed" in [reason.code for reason in advice.reasons]


def test_what_fits_nowhere_is_impossible_and_names_each_group() -> None:
    refusing = group(refuses={"granite-4.1-8b": "no image"})

    (advice,) = plan_of(problem(refusing)).pools

    assert advice.verdict == "impossible"
    assert advice.chosen is None
    assert [one.group for one in advice.refused] == ["amd-mi325x"]


def test_a_plan_prints_its_model_error_and_the_price_of_output() -> None:
    plan = plan_of(problem(currency="USD"))

    assert plan.error == MODEL_ERROR
    chosen = plan.pools[0].chosen
    assert chosen is not None
    assert chosen.outcome is not None
    expected = 8 / (chosen.outcome.output_tokens_per_s * 3600 / 1e6)
    assert float(chosen.cost_per_million_output or 0) == pytest.approx(expected, rel=1e-3)
    assert chosen.watts_at_most == 2800.0


def test_progress_is_told_and_the_end_can_be_asked_for() -> None:
    told: list[tuple[int, int]] = []
    asked = problem()
    advise(asked, seed=1, requests=FEW, progress=lambda done, total: told.append((done, total)))
    total = told[0][1]

    assert told == [(done, total) for done in range(total + 1)]
    with pytest.raises(Cancelled):
        advise(asked, seed=1, should_stop=lambda: True)


def test_the_present_load_is_a_share_of_the_bound() -> None:
    now = {"amd-mi325x": Roles(both=4)}

    light = present_load(problem(demands=(demand(1.0, now=now),)))
    heavy = present_load(problem(demands=(demand(10.0, now=now),)))

    assert heavy == pytest.approx(10 * light)
    assert present_load(problem(demands=(demand(),))) == float("inf")
