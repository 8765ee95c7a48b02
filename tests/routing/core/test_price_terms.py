"""Lines of a price and which way of serving they hold for."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from routing.core.price_terms import TERMS, TOTAL, TPOT, BestTerms, PriceTerms


def terms_of(*columns: dict[str, float]) -> PriceTerms:
    terms = PriceTerms.empty(len(columns))
    for column, values in enumerate(columns):
        for name, value in values.items():
            terms.values[TERMS.index(name), column] = value
    terms.add_up()
    return terms


def test_the_total_is_the_sum_of_every_term() -> None:
    terms = terms_of({name: 2.0**place for place, name in enumerate(TERMS)})

    assert terms.total[0] == 2.0 ** len(TERMS) - 1
    assert set(terms.by_name(0)) == {*TERMS, "total", "tpot"}
    assert (len(TERMS), len(TERMS) + 1) == (TOTAL, TPOT)


def test_the_time_to_the_first_token_is_everything_before_decoding() -> None:
    early = ("wait", "prefill", "load", "first_step", "transfer", "warm_up")
    terms = terms_of(dict.fromkeys(TERMS, 1.0))

    assert terms.ttft_at(0) == len(early)
    assert terms.load_at(0) == terms.transfer_at(0) == 1.0


def test_a_pair_holds_only_where_it_is_used() -> None:
    local = terms_of({"wait": 5.0}, {"wait": 4.0}, {"wait": 3.0})
    best = BestTerms(local)
    paired = terms_of({"wait": 1.0}, {"wait": 9.0})
    best.put_pairs(
        paired,
        sources=np.array([7, 7]),
        use=np.array([True, False]),
        column_of={0: 0, 1: 1},
    )

    assert [best.prefill_at(row) for row in range(3)] == [7, -1, -1]
    assert best.at(0) == (paired, 0)
    assert best.at(1) == (local, 1)
    assert best.cheapest_wait(np.array([0, 2])) == pytest.approx(1.0)


def lines_of(count: int, *, values: st.SearchStrategy[float]) -> st.SearchStrategy[PriceTerms]:
    """Terms as a price makes them: some lines are missing, the total is their sum."""
    line = st.none() | st.lists(values, min_size=count, max_size=count).map(np.array)

    def terms(lines: list[NDArray[np.float64] | None]) -> PriceTerms:
        total = sum((found for found in lines[:TOTAL] if found is not None), np.zeros(count))
        return PriceTerms(total, lines=[*lines[:TOTAL], total, lines[TOTAL]])

    return st.lists(line, min_size=TOTAL + 1, max_size=TOTAL + 1).map(terms)


@given(lines_of(3, values=st.floats(0, 100)), st.integers(0, 2))
def test_single_numbers_and_the_matrix_say_the_same(terms: PriceTerms, column: int) -> None:
    before = terms.by_name(column), terms.ttft_at(column), terms.wait.tolist()
    matrix = terms.values.copy()

    after = terms.by_name(column), terms.ttft_at(column), terms.wait.tolist()

    assert after == before
    assert list(before[0].values()) == matrix[:, column].tolist()
    assert matrix[:TOTAL].sum(axis=0).tolist() == pytest.approx(terms.total.tolist())
