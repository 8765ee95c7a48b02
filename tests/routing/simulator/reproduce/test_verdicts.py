"""Bands are judged on what was simulated; what is missing is not met."""

from routing.simulator.reproduce.measures import OVERALL, PAIR_MEASURES
from routing.simulator.reproduce.tasks import FOUR_ROUTERS, GUIDE, PAIRS, USERS
from routing.simulator.reproduce.users import LEVELS, RATE_PER_USER
from routing.simulator.reproduce.verdicts import bands, published_rows, verdicts
from tests.routing.simulator.reproduce.rows import make_row


def test_every_band_is_about_a_known_case_and_a_known_measure() -> None:
    for band in bands():
        if band.case == "all":
            assert band.measure in OVERALL
        elif band.case not in (FOUR_ROUTERS, USERS):
            assert band.case in PAIRS
            assert band.measure in PAIR_MEASURES
        assert band.low is not None or band.high is not None


def test_without_results_nothing_is_met() -> None:
    found = verdicts({})

    assert len(found) == len(bands())
    assert not any(verdict.is_met for verdict in found)


def test_a_warm_up_is_left_out() -> None:
    service = [make_row(30, 99_999, is_warm_up=True), make_row(85, 8000, published=7459)]
    router = [make_row(30, 1, is_warm_up=True), make_row(85, 14_400, published=14_236)]
    results = {("nxt-3v-granite", "service"): service, ("nxt-3v-granite", "router"): router}

    found = {verdict.id: verdict for verdict in verdicts(results)}

    assert found["3v-ratio"].simulated == 1.8
    assert found["3v-ratio"].is_met
    assert len(published_rows(results)) == 2


def test_four_routers_are_compared_by_the_mean_of_their_ladders() -> None:
    outputs = {
        (GUIDE, "router"): 12_000.0,
        (FOUR_ROUTERS, "approximate"): 8000.0,
        (FOUR_ROUTERS, "load-only"): 5000.0,
        (GUIDE, "service"): 5000.0,
    }

    found = {
        verdict.id: verdict
        for verdict in verdicts({key: [make_row(20, value)] for key, value in outputs.items()})
    }

    assert found["routers-precise"].simulated == 1.5
    assert found["routers-approximate"].simulated == 1.6
    assert found["routers-load"].simulated == 1.0


def test_users_are_served_up_to_the_first_number_that_misses() -> None:
    router = [
        make_row(users * RATE_PER_USER, 100, ttft=0.2 if users <= 200 else 1.5, tpot_ms=19)
        for users in LEVELS
    ]

    found = {verdict.id: verdict for verdict in verdicts({(USERS, "router"): router})}

    assert found["users-router"].simulated == 200
    assert found["users-router"].is_met
    assert found["users-ttft"].simulated == 7.5
    assert not found["users-service"].is_met
