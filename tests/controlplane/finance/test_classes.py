"""Every second of an accelerator has exactly one class."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.finance.classes import CostKey, Span, add_up, seconds_by_class

START = datetime(2026, 11, 30, 10, tzinfo=UTC)
END = START + timedelta(hours=1)
PREFILL, DECODE = CostKey("assigned", "p", "prefill"), CostKey("assigned", "p", "decode")
KEYS = st.sampled_from([PREFILL, DECODE, CostKey("transition", "p"), CostKey("unavailable")])


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


@given(
    st.lists(
        st.tuples(KEYS, st.floats(-90, 90), st.none() | st.floats(-90, 90)).map(
            lambda row: Span(row[0], at(row[1]), None if row[2] is None else at(row[2]))
        ),
        max_size=8,
    )
)
def test_classes_sum_to_the_period(spans: list[Span]) -> None:
    found = seconds_by_class(spans, start=START, end=END)

    assert sum(found.values()) == 3600
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param([], {CostKey("idle"): 3600}, id="nobody-has-it"),
        pytest.param(
            [Span(PREFILL, at(-60), at(20)), Span(DECODE, at(20), None)],
            {PREFILL: 1200, DECODE: 2400},
            id="role-change-splits-the-hour",
        ),
        pytest.param(
            [Span(DECODE, at(0), None), Span(CostKey("transition", "p"), at(0), at(2))],
            {DECODE: 3480, CostKey("transition", "p"): 120},
            id="starting-is-transition",
        ),
        pytest.param(
            [Span(DECODE, at(-1), None), Span(CostKey("unavailable"), at(30), None)],
            {DECODE: 1800, CostKey("unavailable"): 1800},
            id="failed-comes-first",
        ),
        pytest.param([Span(DECODE, at(60), None)], {CostKey("idle"): 3600}, id="half-open"),
    ],
)
def test_first_match_wins(spans: list[Span], expected: dict[CostKey, int]) -> None:
    assert seconds_by_class(spans, start=START, end=END) == expected


def test_accelerators_add_up() -> None:
    assert add_up([{DECODE: 10}, {DECODE: 5, PREFILL: 1}]) == {DECODE: 15, PREFILL: 1}
