"""Histograms count every value once, in the bucket that Prometheus puts it in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.testbed.stats import Histogram, Stats


def test_a_value_on_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((1.0, 2.0))

    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(value)

    assert histogram.counts == [2, 2, 1]


@given(st.lists(st.tuples(st.floats(0, 1e4), st.integers(1, 300)), max_size=30))
def test_counts_and_sum_follow_from_the_values(values: list[tuple[float, int]]) -> None:
    histogram = Histogram((0.01, 1.0, 100.0))

    for value, times in values:
        histogram.observe(value, times)

    assert sum(histogram.counts) == histogram.count == sum(times for _, times in values)
    assert histogram.total == pytest.approx(sum(value * times for value, times in values))


def test_engines_do_not_share_histograms() -> None:
    one, other = Stats(), Stats()

    one.first_token.observe(1.0)

    assert other.first_token.count == 0
