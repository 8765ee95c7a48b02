"""Sums over a placement: roles, cost, power, moves."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from routing.planner.placement import (
    Share,
    accelerators_in,
    can_answer,
    cost_per_hour,
    is_split,
    moves_between,
    roles_by_group,
    watts_at_most,
)
from routing.planner.problem import Roles
from tests.routing.planner.fleets import group

COUNTS = st.integers(0, 6)


@st.composite
def shares(draw: st.DrawFn) -> tuple[Share, ...]:
    return tuple(
        Share(group=name, width=1, prefill=draw(COUNTS), decode=draw(COUNTS), both=draw(COUNTS))
        for name in ("a", "b")
    )


@given(shares())
def test_moving_nothing_moves_nothing(placement: tuple[Share, ...]) -> None:
    assert moves_between(placement, placement) == 0


@given(shares(), shares())
def test_no_more_move_than_there_are_on_both_sides(
    before: tuple[Share, ...], after: tuple[Share, ...]
) -> None:
    moved = moves_between(before, after)

    assert 0 <= moved <= accelerators_in(before) + accelerators_in(after)
    assert (moved == 0) == (roles_by_group(before) == roles_by_group(after))


def test_engines_of_two_accelerators_count_twice() -> None:
    placement = (Share(group="a", width=2, prefill=1, both=2),)

    assert roles_by_group(placement) == {"a": Roles(prefill=2, both=4)}
    assert accelerators_in(placement) == 6


def test_cost_and_power_are_unknown_as_soon_as_one_is() -> None:
    placement = (Share(group="a", width=1, both=2), Share(group="b", width=1, both=1))
    known = {"a": group(name="a"), "b": group(name="b")}
    missing = {"a": group(name="a"), "b": group(name="b", price_per_hour=None, watts=None)}

    assert cost_per_hour(placement, known) == Decimal(6)
    assert watts_at_most(placement, known) == 2100.0
    assert cost_per_hour(placement, missing) is None
    assert watts_at_most(placement, missing) is None


def test_a_lone_prefill_answers_nobody() -> None:
    prefill = (Share(group="a", width=1, prefill=2),)
    pair = (*prefill, Share(group="b", width=1, decode=1))

    assert not can_answer(prefill)
    assert can_answer(pair)
    assert is_split(pair)
