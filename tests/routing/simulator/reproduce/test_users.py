"""Users under an objective: TTFT p90 of a second, 50 tokens a second."""

import pytest

from routing.simulator.reproduce.users import RATE_PER_USER, ttft_at, users_served
from tests.routing.simulator.reproduce.rows import make_row

MET = {"ttft": 0.2, "tpot_ms": 19.0}


def test_the_largest_number_before_the_first_miss_counts() -> None:
    rows = [
        make_row(15, 100, is_warm_up=True),
        make_row(1, 100, **MET),
        make_row(2, 100, **MET),
        make_row(4, 100, ttft=0.2, tpot_ms=20.5),
        make_row(5, 100, **MET),
    ]

    assert users_served(rows) == pytest.approx(2 / RATE_PER_USER)


@pytest.mark.parametrize("late", [{"ttft_p90": 1.01}, {"tpot_ms": 20.1}])
def test_either_limit_can_be_missed(late: dict[str, float]) -> None:
    assert users_served([make_row(1, 100, **(MET | late))]) == 0


def test_no_answers_serve_nobody() -> None:
    assert users_served([make_row(1, 0)]) == 0


def test_the_time_to_the_first_token_of_a_number_of_users() -> None:
    rows = [make_row(12.5, 100, ttft=0.3)]

    assert ttft_at(rows, 250) == 0.3
    assert ttft_at(rows, 20) is None
