"""The policies against each other on the virtual fleet: hit rate, times, adaptation."""

import numpy as np

from tests.routing.pool.virtual_fleet import Run


def test_consort_doubles_the_hit_rate_of_random_and_answers_sooner() -> None:
    random, consort = Run("random").finish(), Run("consort").finish()

    assert consort.hit_rate >= 2 * random.hit_rate
    assert np.median(consort.ttft) < np.median(random.ttft)
    assert np.percentile(consort.ttft, 90) < np.percentile(random.ttft, 90)
    assert np.mean(consort.e2e) < np.mean(random.e2e)


def test_consort_stays_quick_where_the_others_are_saturated() -> None:
    least, consort = (
        Run(policy, requests=900, rate=60.0).finish() for policy in ("least-requests", "consort")
    )

    assert np.median(consort.ttft) < np.median(least.ttft) / 10
    assert consort.hit_rate > 0.7


def test_prompts_in_a_pool_of_one_class_gather_where_their_prefix_is() -> None:
    fleet = [("mi325x", "both")] * 8

    random, consort = (
        Run(policy, fleet=fleet, rate=15.0).finish() for policy in ("random", "consort")
    )

    assert consort.hit_rate >= 2 * random.hit_rate
    assert np.median(consort.ttft) < np.median(random.ttft) / 2
    assert len(consort.destinations) == len(fleet)


def test_a_card_three_times_slower_than_its_class_gets_less_work() -> None:
    slow = {"mi325x-4": 3.0}

    outcome = Run("consort", slow=slow).finish()

    sisters = [outcome.destinations[f"mi325x-{position}"] for position in range(5, 12)]
    assert outcome.destinations["mi325x-4"] < 0.6 * np.mean(sisters)


def test_predicted_times_to_the_first_token_are_near_the_observed_ones() -> None:
    outcome = Run("consort").finish()

    # The first third teaches the router.
    seen, predicted = np.array(outcome.ttft[200:]), np.array(outcome.predicted_ttft[200:])
    assert np.median(np.abs(predicted - seen) / seen) < 0.15


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (Run("consort", requests=150).finish() for _ in range(2))

    assert first == second
