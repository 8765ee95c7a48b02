"""The reason is the factor with the largest advantage, whatever the other terms do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.explain.reasons import FACTORS, reason_of
from tests.routing.explain.records import TERMS, candidate, record

SECONDS = st.floats(min_value=0, max_value=100)


@given(
    ours=st.fixed_dictionaries(dict.fromkeys(TERMS, SECONDS)),
    theirs=st.fixed_dictionaries(dict.fromkeys(TERMS, SECONDS)),
)
def test_the_reason_of_a_win_is_never_a_factor_in_which_the_winner_is_worse(
    ours: dict[str, float], theirs: dict[str, float]
) -> None:
    told = reason_of(record(candidate("b", **ours), candidate("a", **theirs)))

    if told.kind.startswith("price-"):
        factor = told.kind.removeprefix("price-")
        terms = FACTORS.get(factor, FACTORS["prompt"])
        assert sum(theirs[name] - ours[name] for name in terms) > 0
        assert told.facts["gain"] > 0
    else:
        assert told.kind in ("tie", "near-tie")


@pytest.mark.parametrize("factor", [name for name in FACTORS if name != "prompt"])
def test_each_factor_can_be_the_reason(factor: str) -> None:
    slower = {FACTORS[factor][0]: 5.0}

    told = reason_of(record(candidate("b"), candidate("a", **slower)))

    assert told.kind == f"price-{factor}"


def test_a_term_that_nobody_placed_would_not_be_explained() -> None:
    placed = {name for terms in FACTORS.values() for name in terms}

    assert placed == set(TERMS)


@pytest.mark.parametrize("empty", [{}, {"destination": "a"}, {"candidates": None}])
def test_a_record_with_nothing_in_it_is_unexplained(empty: dict[str, object]) -> None:
    assert reason_of(empty).kind == "unexplained"
