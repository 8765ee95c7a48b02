"""Published points of cases."""

from routing.simulator.race.cases import CASES, Case
from routing.simulator.race.known import published_points


def test_the_published_ladder_of_the_same_fleet_is_found() -> None:
    points = published_points(CASES["nxt-granite-6k@nxt-3vendor"])

    assert (85.0, 14235.9, "llm-d, published") in points["throughput"]
    # The warm-up stage at 20 requests/s is not a measured one.
    assert (20.0, 8168.3, "Kubernetes Service, published") not in points["throughput"]


def test_a_fleet_that_nobody_published_has_no_points() -> None:
    assert not published_points(CASES["nxt-granite-6k@spread-4x"])
    assert not published_points(CASES["nxt-granite-6k@one-dies"])


def test_rates_far_beyond_the_case_are_left_out() -> None:
    case = Case(workload="nxt-granite-6k", fleet="nxt-3vendor", warm_up_qps=5, rates=(10, 40))

    assert max(rate for rate, _, _ in published_points(case)["throughput"]) == 40.0
