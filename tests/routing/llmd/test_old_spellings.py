"""Deprecated spellings and places, each turned into a current one with a note."""

from typing import Any

import pytest

from routing.core.document import DocumentError
from routing.llmd.model import EndpointPickerConfig, PluginEntry
from routing.llmd.notes import Note
from routing.llmd.old_spellings import current_entry
from routing.llmd.reading import canonical, read

HEAD = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n"


def current(kind: str, **parameters: Any) -> tuple[PluginEntry, list[PluginEntry], list[Note]]:
    notes: list[Note] = []
    entry, added = current_entry(PluginEntry(type=kind, parameters=parameters), "/plugins/0", notes)
    return entry, added, notes


def test_a_bound_in_characters_becomes_a_decider_in_tokens() -> None:
    entry, (decider,), notes = current("pd-profile-handler", threshold=10, hashBlockSize=5)

    assert entry.settings == {"deciders": {"prefill": decider.name}}
    assert (decider.type, decider.settings) == ("prefix-based-pd-decider", {"nonCachedTokens": 3})
    assert {note.pointer for note in notes} == {
        "/plugins/0/type",
        "/plugins/0/parameters/threshold",
        "/plugins/0/parameters/hashBlockSize",
    }


def test_a_decider_that_is_named_outranks_the_bound() -> None:
    entry, added, _ = current("pd-profile-handler", threshold=10, deciderPluginName="mine")

    assert entry.settings == {"deciders": {"prefill": "mine"}}
    assert added == []


@pytest.mark.parametrize("threshold", [-1, "10", 1.5, True])
def test_a_bound_of_a_wrong_type_is_refused(threshold: object) -> None:
    with pytest.raises(DocumentError) as refused:
        current("pd-profile-handler", threshold=threshold)

    assert refused.value.pointer == "/plugins/0/parameters/threshold"


@pytest.mark.parametrize("deciders", [["mine"], "mine", 5])
def test_deciders_of_a_wrong_type_beside_a_bound_are_refused(deciders: object) -> None:
    with pytest.raises(DocumentError) as refused:
        current("pd-profile-handler", threshold=10, deciders=deciders)

    assert refused.value.pointer == "/plugins/0/parameters/deciders"


def test_hashes_from_outside_are_left_out_and_told() -> None:
    entry, _, notes = current("approx-prefix-cache-producer", prefixHashSource="metadata")

    assert entry.settings == {}
    assert [(note.kind, note.subject) for note in notes] == [("kept", "prefixHashSource")]


def _canonical(text: str) -> tuple[EndpointPickerConfig, set[tuple[str, str]]]:
    config, notes = canonical(read(HEAD + text))
    return config, {(note.kind, note.pointer) for note in notes}


def test_thresholds_of_saturation_at_the_top_are_told_and_left_out() -> None:
    config, told = _canonical("saturationDetector: {queueDepthThreshold: 8}")

    assert ("kept", "/saturationDetector") in told
    assert config == read(HEAD.replace("inference.networking.x-k8s.io", "llm-d.ai"))


def test_data_is_the_data_layer_unless_there_is_one() -> None:
    source = "{sources: [{pluginRef: metrics-data-source}]}"
    moved, told = _canonical(f"data: {source}")
    both, _ = _canonical(f"data: {source}\ndataLayer: {{injectDefaults: true}}")

    assert ("renamed", "/data") in told
    assert moved.data_layer.sources[0].plugin_ref == "metrics-data-source"  # type: ignore[union-attr]
    assert both.data_layer.inject_defaults is True  # type: ignore[union-attr]


def test_the_newest_version_is_read_without_a_remark() -> None:
    text = "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\n"

    assert canonical(read(text))[1] == []
