"""The policies against each other on the simulator: hit rate, times, adaptation."""

from dataclasses import replace

import numpy as np

from tests.routing.pool.simulated import (
    EIGHT_EQUAL,
    STARVED,
    STARVED_PROFILE,
    Load,
    outcome_of,
)


def test_consort_doubles_the_hit_rate_of_random_and_answers_sooner() -> None:
    random, consort = outcome_of("random"), outcome_of("consort")

    assert consort.hit_rate >= 2 * random.hit_rate
    assert np.median(consort.ttft) < np.median(random.ttft)
    assert np.percentile(consort.ttft, 90) < np.percentile(random.ttft, 90)
    assert np.mean(consort.e2e) < np.mean(random.e2e)


def test_consort_stays_quick_where_the_others_are_saturated() -> None:
    load = Load(stages=((60.0, 15.0),))

    least, consort = (outcome_of(policy, load) for policy in ("least-requests", "consort"))

    assert np.median(consort.ttft) < np.median(least.ttft) / 10
    assert consort.hit_rate > 0.7


def test_prompts_in_a_pool_of_one_class_gather_where_their_prefix_is() -> None:
    load = Load(stages=((15.0, 40.0),))

    random, consort = (
        outcome_of(policy, load, fleet=EIGHT_EQUAL) for policy in ("random", "consort")
    )

    assert consort.hit_rate >= 2 * random.hit_rate
    assert np.median(consort.ttft) < np.median(random.ttft) / 2
    assert len(consort.destinations) == 8


def test_a_card_three_times_slower_than_its_class_gets_less_work() -> None:
    outcome = outcome_of("consort", slow={"amd-mi325x-4": 1 / 3})

    sisters = [outcome.destinations[f"amd-mi325x-{position}"] for position in range(5, 12)]
    assert outcome.destinations["amd-mi325x-4"] < 0.6 * np.mean(sisters)


def test_predicted_times_to_the_first_token_are_near_the_observed_ones() -> None:
    outcome = outcome_of("consort")

    # The first third teaches the router.
    late = outcome.courses[200:]
    seen = np.array([course.ttft for course in late], dtype=float)
    predicted = np.array([course.predicted_ttft for course in late], dtype=float)
    assert np.median(np.abs(predicted - seen) / seen) < 0.15


def test_where_prefixes_fill_the_memory_no_endpoint_gets_too_many_of_them_by_chance() -> None:
    load = Load(question_tokens=1550, output_tokens=920, stages=((12, 20), (20, 30)))

    weighted, consort = (
        outcome_of(policy, load, fleet=STARVED, seed=2) for policy in ("llm-d-weighted", "consort")
    )

    assert consort.report.goodput_rps >= 0.95 * weighted.report.goodput_rps
    assert np.mean(consort.e2e) <= 1.01 * np.mean(weighted.e2e)


def test_engine_events_help_llm_ds_policy_where_memory_is_short() -> None:
    load = Load(question_tokens=1550, output_tokens=200, stages=((8, 40), (10, 30)))
    profile = replace(STARVED_PROFILE, kv_tokens=120_000)
    fleet = [replace(member, profile=profile) for member in STARVED]

    approximate = outcome_of("llm-d-weighted", load, fleet=fleet, has_events=True)
    precise, blind = (
        outcome_of("llm-d-precise", load, fleet=fleet, has_events=has_events)
        for has_events in (True, False)
    )

    assert precise.hit_rate > blind.hit_rate
    assert precise.hit_rate > approximate.hit_rate
