"""Configurations in their own words, in current words, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.document import DocumentError
from routing.llmd import yaml_text
from routing.llmd.catalogue import SCHEDULING
from routing.llmd.other_types import TYPES
from routing.llmd.reading import canonical, read, write

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))
HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"


def sample(name: str) -> str:
    return (Path(__file__).parent / "samples" / f"{name}.yaml").read_text()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_text_is_written_back_as_it_was_read(path: Path) -> None:
    text = path.read_text()

    written = write(read(text))

    assert yaml.safe_load(written) == yaml.safe_load(text)
    assert write(read(written)) == written


def test_deprecated_spellings_become_current_ones_with_a_note_each() -> None:
    current, notes = canonical(read(sample("old-names")))

    types = {entry.known_as: entry.type for entry in current.entries}
    assert types == {
        "pd-profile-handler": "disagg-profile-handler",
        "always-disagg-pd-decider": "always-disagg-pd-decider",
        "prefill-header-handler": "disagg-headers-handler",
        "by-label-selector": "label-selector-filter",
        "tokenizer": "token-producer",
        "model-server-protocol-metrics": "core-metrics-extractor",
        "prefix-cache-scorer": "prefix-cache-scorer",
        "prefix-cache-scorer-producer": "approx-prefix-cache-producer",
        "precise-prefix-cache-scorer": "prefix-cache-scorer",
        "precise-prefix-cache-scorer-producer": "precise-prefix-cache-producer",
        "queue-scorer": "queue-scorer",
        "utilization-detector": "utilization-detector",
        "openai-parser": "openai-parser",
    }
    assert current.entries[0].settings == {
        "profiles": {"decode": "decode", "prefill": "prefill"},
        "deciders": {"prefill": "always-disagg-pd-decider"},
    }
    assert current.api_version == "llm-d.ai/v1alpha1"
    assert {note.kind for note in notes} == {"renamed"}
    assert {"/apiVersion", "/plugins/0/type", "/plugins/6/parameters/blockSize", "/parser",
            "/saturationDetector"} <= {note.pointer for note in notes}  # fmt: skip


def test_a_current_text_is_canonical_already() -> None:
    config = read(sample("everything"))

    current, notes = canonical(config)

    assert (current, notes) == (config, [])


def test_the_deprecated_place_counts_only_where_the_current_one_is_unset() -> None:
    text = HEAD + (
        "plugins: [{type: utilization-detector}, {type: concurrency-detector}]\n"
        "saturationDetector: {pluginRef: utilization-detector}\n"
        "flowControl: {saturationDetector: {pluginRef: concurrency-detector}}\n"
    )

    current, _ = canonical(read(text))

    assert current.flow_control.saturation_detector.plugin_ref == "concurrency-detector"


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        pytest.param("kind: EndpointPickerConfig", "", id="no-version"),
        pytest.param("apiVersion: v1\nkind: EndpointPickerConfig", "/apiVersion", id="version"),
        pytest.param(HEAD + "plugin: []", "/plugin", id="unknown-field"),
        pytest.param(HEAD + "plugins: [{typ: queue-scorer}]", "/plugins/0/typ", id="no-type"),
        pytest.param(HEAD + "plugins: [{type: queue-scorrer}]", "/plugins/0/type", id="type"),
        pytest.param(
            HEAD + "plugins: [{type: queue-scorer, parameters: {depth: 1}}]",
            "/plugins/0/parameters/depth",
            id="parameter-of-a-type-without",
        ),
        pytest.param(
            HEAD + "plugins: [{type: token-load-scorer, parameters: {queueThresholdTokens: x}}]",
            "/plugins/0/parameters/queueThresholdTokens",
            id="type-of-a-parameter",
        ),
        pytest.param(
            HEAD + "plugins: [{type: disagg-profile-handler, parameters: {profiles: {x: y}}}]",
            "/plugins/0/parameters/profiles/x",
            id="unknown-field-of-a-parameter",
        ),
        pytest.param(
            HEAD + "plugins: [{type: priority-holdback-policy}]",
            "/plugins/0/parameters",
            id="required-parameter",
        ),
        pytest.param(
            HEAD + "plugins: [{type: queue-scorer}, {type: queue-scorer}]",
            "/plugins/1/name",
            id="name-twice",
        ),
        pytest.param(
            HEAD + "schedulingProfiles: [{name: a, plugins: [{pluginRef: queue-scorer}]}]",
            "/schedulingProfiles/0/plugins/0/pluginRef",
            id="reference-to-nobody",
        ),
        pytest.param(
            HEAD + "schedulingProfiles: [{name: a}, {name: a}]",
            "/schedulingProfiles/1/name",
            id="profile-twice",
        ),
        pytest.param(
            HEAD + "dataLayer: {discovery: {pluginRef: nobody}}",
            "/dataLayer/discovery/pluginRef",
            id="discovery-of-nobody",
        ),
        pytest.param(
            HEAD + "flowControl: {priorityBands: [{priority: 1, size: 3}]}",
            "/flowControl/priorityBands/0/size",
            id="unknown-field-of-a-band",
        ),
        pytest.param("[1, 2]", "", id="a-list"),
        pytest.param("just words", "", id="words"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text: str, pointer: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(text)

    assert caught.value.pointer == pointer
    assert caught.value.message


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(DocumentError, match="Did you mean 'queue-scorer'"):
        read(HEAD + "plugins: [{type: queue-scorrer}]")


def test_every_type_of_the_format_is_known_and_can_be_written_alone() -> None:
    for name, spec in TYPES.items():
        required = {"by-label": {"label": "x"}, "priority-holdback-policy": {"minCeiling": 0.5}}
        tree: dict[str, Any] = {
            "apiVersion": "llm-d.ai/v1alpha1",
            "kind": "EndpointPickerConfig",
            "plugins": [{"type": name, "parameters": required.get(name, {})}],
        }

        assert yaml.safe_load(write(read(yaml.safe_dump(tree)))) == tree
        assert spec.parameters is not None or not spec.has_counterpart

    assert len(SCHEDULING) == 38


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_it(text: str) -> None:
    try:
        config = read(text)
    except DocumentError:
        return

    assert yaml_text.load(write(config)) is not None


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(
                st.sampled_from(
                    [
                        "plugins",
                        "type",
                        "name",
                        "parameters",
                        "schedulingProfiles",
                        "pluginRef",
                        "weight",
                        "flowControl",
                        "priorityBands",
                        "dataLayer",
                        "deciders",
                    ]
                ),
                inner,
                max_size=5,
            ),
        ),
        max_leaves=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_no_tree_breaks_it(tree: Any) -> None:
    whole = {"apiVersion": "llm-d.ai/v1alpha1", "kind": "EndpointPickerConfig"}
    if isinstance(tree, dict):
        whole |= tree
    try:
        config = read(yaml.safe_dump(whole))
    except DocumentError:
        return

    assert yaml.safe_load(write(config)) == yaml.safe_load(yaml.safe_dump(whole))
