"""Health of a node: the worse of two views."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery import health
from inventory.discovery.comparing import Comparison
from tests.inventory.discovery.test_comparing_clusters import seen

VERDICTS = [("failed", "a"), ("unknown", "b"), ("degraded", "c"), ("healthy", "")]


@given(st.lists(st.sampled_from(VERDICTS), min_size=1))
def test_the_worse_view_holds_whatever_the_order(verdicts: list[health.Verdict]) -> None:
    worst = health.worse(*verdicts)

    assert worst in verdicts
    assert worst == health.worse(*reversed(verdicts))
    assert all(VERDICTS.index(worst) <= VERDICTS.index(each) for each in verdicts)


@pytest.mark.parametrize(
    ("parts", "all_usable", "expected"),
    [
        pytest.param({"count": 2, "usable": 2}, True, ("healthy", ""), id="all"),
        pytest.param({"count": 2, "usable": 1}, False, ("unknown", "counted"), id="some"),
        pytest.param({"vendor": ""}, False, ("unknown", "not-reported"), id="nothing"),
        pytest.param({"count": 2, "state": "lost"}, True, ("unknown", "node-lost"), id="lost"),
    ],
)
def test_a_device_that_was_only_counted_is_healthy_only_if_all_are(
    parts: dict[str, object], expected: health.Verdict, *, all_usable: bool
) -> None:
    result = Comparison({}, (), (), unsaid=("row-0", "row-1"), all_usable=all_usable)

    assert health.of_unsaid_device(seen(**parts), result) == expected
