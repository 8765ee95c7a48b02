"""Two pools under equal traffic: equal moments, equal requests, bounded memory."""

from itertools import pairwise

import msgspec
import pytest

from routing.simulator.live.duel import KEPT_READINGS, PIECE_SECONDS, READ_EVERY_SECONDS, Duel

pytestmark = pytest.mark.xdist_group("duel")


def make_duel(rate: float = 4.0, seed: int = 1) -> Duel:
    return Duel(rate_qps=rate, seed=seed, fleet="nxt-4xh100nvl")


def run_to(duel: Duel, moment: float) -> Duel:
    while duel.now < moment:
        duel.advance(moment - duel.now)
    return duel


def test_a_piece_is_small_and_both_sides_are_at_one_moment() -> None:
    duel = make_duel()

    duel.advance(100.0)
    view = duel.view()

    assert view.at == PIECE_SECONDS
    assert view.sides[0].sent == view.sides[1].sent


def test_both_sides_get_as_many_requests_also_when_the_rate_changes() -> None:
    duel = run_to(make_duel(2.0), 10.0)
    before = duel.view().sides[0].sent
    duel.rate_qps = 12.0
    left, right = run_to(duel, 20.0).view().sides

    assert left.sent == right.sent
    assert left.sent - before > 2 * before
    assert (left.policy, right.policy) == ("random", "consort")


def test_the_view_says_since_when_its_rate_is_offered() -> None:
    duel = run_to(make_duel(2.0), 2.0)
    first = duel.view().rate_since
    duel.rate_qps = 2.0
    same = duel.view().rate_since
    duel.rate_qps = 3.0

    assert (first, same, duel.view().rate_since) == (0.0, 0.0, 2.0)


def test_equal_seeds_give_equal_bytes() -> None:
    first, second = (msgspec.json.encode(run_to(make_duel(), 15.0).view()) for _ in range(2))

    assert first == second


def test_readings_come_at_equal_distances_and_the_oldest_go() -> None:
    duel = run_to(make_duel(0.2), READ_EVERY_SECONDS * (KEPT_READINGS + 5))

    for side in duel.view().sides:
        moments = [reading.at for reading in side.readings]
        assert len(moments) == KEPT_READINGS
        assert moments[-1] == duel.now
        assert {round(b - a, 6) for a, b in pairwise(moments)} == {READ_EVERY_SECONDS}


def test_requests_that_are_over_are_not_kept() -> None:
    duel = run_to(make_duel(1.0), 120.0)

    for lane in duel._lanes:
        assert lane.run.courses == []
        assert lane.run.sent > 80


def test_a_price_is_stated_with_its_currency() -> None:
    view = run_to(make_duel(4.0), 30.0).view()

    assert view.currency == "USD"
    assert view.price_per_hour is not None
    assert all(side.readings[-1].cost_per_million_output is not None for side in view.sides)


@pytest.mark.parametrize("rate", [0.0, -1.0, 5000.0])
def test_a_rate_that_cannot_be_sent_is_refused(rate: float) -> None:
    duel = make_duel()

    with pytest.raises(ValueError, match="cannot be sent"):
        duel.rate_qps = rate
