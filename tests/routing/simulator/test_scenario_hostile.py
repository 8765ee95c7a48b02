"""Whatever a scenario file says, it is a study or refused with a sentence."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from routing.simulator.scenario_file import ScenarioError, read_study
from routing.simulator.scenario_specs import ScenarioSpec

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 5), st.floats(), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.text(max_size=8), below, max_size=3)
    ),
    max_leaves=6,
)
GOOD: dict[str, Any] = {
    "model": "granite-4.1-8b",
    "fleet": [{"accelerator": "amd-mi325x", "count": 1}],
    "workload": {
        "kind": "random-lengths",
        "input_tokens": 9,
        "output_tokens": 9,
        "stages": [[1, 1]],
    },
}
WORKLOAD_FIELDS = ("id", "kind", "stages", "input_tokens", "block_tokens", "path", "parts", "x")


def _checked(text: str) -> None:
    try:
        study = read_study(text.encode("utf-8", "surrogatepass"))
    except ScenarioError:
        return
    assert study.runs


@given(st.text(max_size=100))
def test_any_text(text: str) -> None:
    _checked(text)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(ScenarioSpec.__struct_fields__), VALUES, max_size=3))
def test_any_value_of_any_field(changes: dict[str, Any]) -> None:
    _checked(json.dumps(GOOD | changes))


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(WORKLOAD_FIELDS), VALUES, max_size=3))
def test_any_value_in_a_workload(changes: dict[str, Any]) -> None:
    _checked(json.dumps(GOOD | {"workload": GOOD["workload"] | changes}))


@given(st.dictionaries(st.sampled_from(("accelerator", "count", "role", "speed")), VALUES))
def test_any_value_in_a_fleet(changes: dict[str, Any]) -> None:
    _checked(json.dumps(GOOD | {"fleet": [GOOD["fleet"][0] | changes]}))
