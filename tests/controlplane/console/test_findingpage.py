"""Facts in words, and what may be done with a finding."""

from typing import Any

import pytest

from controlplane.console.findingpage import facts_of, row_of
from inventory.models import Finding, Observation


def finding(**suggestion: Any) -> Finding:
    return Finding(suggestion=suggestion, observation=Observation(content={}))


def test_each_fact_has_its_source_and_place_and_a_name_nobody_knows_stays() -> None:
    known = {"name": "count", "value": 8, "source": "label", "place": "NVIDIA"}
    other = {"name": "new", "value": "x", "source": "oracle", "place": ""}

    first, second = facts_of(Observation(content={"facts": [known, other]}))

    assert (str(first.name), first.value, str(first.source), first.place) == (
        "devices", 8, "label", "NVIDIA",
    )  # fmt: skip
    assert (second.name, second.source) == ("new", "oracle")


def test_an_agents_report_and_no_report_have_no_facts() -> None:
    assert facts_of(None) == facts_of(Observation(content={"accelerators": []})) == []


@pytest.mark.parametrize(
    ("suggestion", "acceptable", "needs_model"),
    [
        ({"do": "create-node", "model": "amd-mi325x"}, True, False),
        ({"do": "create-node", "model": None}, True, True),
        ({"do": "look-at-the-node"}, False, False),
        ({}, False, False),
    ],
)
def test_what_may_be_done_follows_the_suggestion(
    suggestion: dict[str, Any], *, acceptable: bool, needs_model: bool
) -> None:
    row = row_of(finding(**suggestion))

    assert (row.acceptable, row.needs_model) == (acceptable, needs_model)
