"""Splitting an amount loses nothing and favours nobody."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.finance.money import AMOUNT_STEP, MoneyError, split_exact

AMOUNTS = st.decimals(min_value=-(10**15), max_value=10**15, places=10)
WEIGHTS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.decimals(min_value=0, max_value=10**9, places=6),
    min_size=1,
    max_size=12,
).filter(lambda weights: any(weights.values()))


@given(AMOUNTS, WEIGHTS)
def test_parts_sum_to_the_total(total: Decimal, weights: dict[str, Decimal]) -> None:
    parts = split_exact(total, weights)

    assert sum(parts.values()) == total
    assert set(parts) == set(weights)


@given(AMOUNTS, WEIGHTS)
def test_each_part_is_within_one_step_of_its_share(
    total: Decimal, weights: dict[str, Decimal]
) -> None:
    parts = split_exact(total, weights)

    whole = sum(weights.values())
    for key, part in parts.items():
        assert abs(part * whole - total * weights[key]) <= AMOUNT_STEP * whole
        assert weights[key] or part == 0


@given(AMOUNTS, WEIGHTS)
def test_order_of_the_weights_does_not_matter(total: Decimal, weights: dict[str, Decimal]) -> None:
    backwards = dict(reversed(weights.items()))

    assert split_exact(total, weights) == split_exact(total, backwards)


def test_ties_go_by_key() -> None:
    parts = split_exact(Decimal("0.0000000001"), {"b": Decimal(1), "a": Decimal(1)})

    assert parts == {"a": AMOUNT_STEP, "b": 0}


@pytest.mark.parametrize(
    ("total", "weights", "message"),
    [
        (Decimal(1), {"a": Decimal(0)}, "All weights are 0"),
        (Decimal(1), {"a": Decimal(-1), "b": Decimal(2)}, "negative"),
        (Decimal("0.00000000001"), {"a": Decimal(1)}, "finer than"),
    ],
)
def test_what_cannot_be_split_is_refused(
    total: Decimal, weights: dict[str, Decimal], message: str
) -> None:
    with pytest.raises(MoneyError, match=message):
        split_exact(total, weights)
