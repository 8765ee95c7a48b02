"""Label selectors as Kubernetes evaluates them."""

from typing import Any

import msgspec
import pytest

from routing.filters.labels import ByLabel, LabelSelectorFilter
from tests.routing.contexts import make_context

LABELS: list[dict[str, str]] = [{"tier": "fast", "zone": "a"}, {"tier": "slow"}, {}]


def kept(parameters: dict[str, Any]) -> list[bool]:
    plugin = msgspec.convert(parameters, LabelSelectorFilter)
    return plugin.keep(make_context(3, labels=LABELS)).tolist()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({}, [True, True, True], id="empty-selector-keeps-all"),
        pytest.param({"matchLabels": {"tier": "fast"}}, [True, False, False], id="match-labels"),
        pytest.param(
            {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["slow", "x"]}]},
            [False, True, False],
            id="in",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["slow"]}]},
            [True, False, True],
            id="not-in-holds-without-the-label",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
            [True, False, False],
            id="exists",
        ),
        pytest.param(
            {
                "matchLabels": {"tier": "slow"},
                "matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}],
            },
            [False, True, False],
            id="joined-by-and",
        ),
    ],
)
def test_selector(parameters: dict[str, Any], expected: list[bool]) -> None:
    assert kept(parameters) == expected


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "tier", "operator": "In"},
        {"key": "tier", "operator": "Exists", "values": ["x"]},
        {"key": "tier", "operator": "Near", "values": ["x"]},
        {"key": "tier", "operator": "In", "values": ["x"], "weight": 1},
    ],
)
def test_an_expression_that_kubernetes_refuses_is_refused(expression: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="matchExpressions"):
        kept({"matchExpressions": [expression]})


def test_by_label_keeps_some_values_and_on_request_those_without() -> None:
    context = make_context(3, labels=LABELS)

    strict = ByLabel(label="tier", valid_values=("fast",))
    mild = ByLabel(label="tier", valid_values=("fast",), allows_no_label=True)

    assert strict.keep(context).tolist() == [True, False, False]
    assert mild.keep(context).tolist() == [True, False, True]
