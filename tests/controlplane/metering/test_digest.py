"""Digests merge in any order and stay within their promised error."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.digest import (
    RELATIVE_ERROR,
    SMALLEST_SECONDS,
    bucket_of,
    count,
    digest_of,
    merge,
    quantile,
)

DURATIONS = st.lists(st.floats(SMALLEST_SECONDS, 1e5), min_size=1, max_size=60)


def test_error_bound_is_two_percent() -> None:
    assert RELATIVE_ERROR <= 0.02


@given(DURATIONS, st.sampled_from([0.0, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_quantile_is_within_the_bound_of_the_exact_one(values: list[float], share: float) -> None:
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]

    estimate = quantile(digest_of(values), share)

    assert estimate is not None
    assert abs(estimate - exact) <= RELATIVE_ERROR * exact * (1 + 1e-9)


@given(DURATIONS, DURATIONS)
def test_merge_equals_the_digest_of_all_values(first: list[float], second: list[float]) -> None:
    merged = merge([digest_of(first), digest_of(second)])

    assert merged == digest_of(second + first)
    assert list(merged) == list(digest_of(first + second))
    assert count(merged) == len(first) + len(second)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_an_unknown_duration_is_in_no_bucket(value: float | None) -> None:
    assert bucket_of(value) is None
    assert digest_of([value]) == {}


def test_no_values_give_no_quantile() -> None:
    assert quantile({}, 0.5) is None


def test_zero_counts_as_the_smallest_duration() -> None:
    assert bucket_of(0.0) == bucket_of(SMALLEST_SECONDS)
