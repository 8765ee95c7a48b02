"""A file of either kind as the other, with what was lost on the way."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from routing.core.document import DocumentError, parse_document
from routing.llmd.conversion import convert
from routing.llmd.exchange import exchange
from routing.llmd.reading import read, tree_of
from tests.routing.llmd.test_reading import HEAD, SAMPLES
from tests.routing.pool.builders import document_dict, endpoint_dict

WEIGHTED = HEAD + (
    "plugins: [{type: queue-scorer}, {type: max-score-picker}, {type: file-discovery}]\n"
    "schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer, weight: 3},"
    " {pluginRef: max-score-picker}]}]\n"
)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_there_and_back_with_its_base_it_is_the_same(path: Path) -> None:
    there = exchange(path.read_bytes())
    back = exchange(encoded(there.tree), base=path.read_bytes())

    assert not there.is_llmd
    assert back.is_llmd
    assert back.tree == tree_of(read(path.read_text()))


def test_what_has_no_counterpart_is_told() -> None:
    notes = exchange(WEIGHTED.encode()).notes

    assert [note.subject for note in notes if note.kind == "kept"] == ["file-discovery"]


def test_a_configuration_goes_into_a_pool_document_as_its_next_version() -> None:
    before = document_dict(endpoint_dict("a"), endpoint_dict("b"))

    found = exchange(WEIGHTED.encode(), into=encoded(before))

    document = parse_document(encoded(found.tree))
    assert document.version == before["version"] + 1
    assert document.policy == convert(WEIGHTED).policy
    assert [endpoint.id for endpoint in document.endpoints] == ["a", "b"]


def test_a_pool_document_becomes_a_configuration_and_says_what_it_leaves_behind() -> None:
    policy = exchange(WEIGHTED.encode()).tree["policy"]
    admission = {"queue_requests": 10, "trickle_share": 0.5}
    document = document_dict(endpoint_dict("a"), policy=policy, admission=admission)

    found = exchange(encoded(document))

    assert found.tree["kind"] == "EndpointPickerConfig"
    assert found.tree["flowControl"]["maxRequests"] == 10
    told = {note.pointer for note in found.notes}
    assert {"", "/admission/trickle_share"} <= told
    assert "/admission/queue_requests" not in told


def test_yaml_of_our_parts_is_read_too() -> None:
    policy = exchange(WEIGHTED.encode()).tree["policy"]
    text = msgspec.yaml.encode({"policy": policy})

    assert exchange(text).is_llmd


@pytest.mark.parametrize(
    ("raw", "pointer", "words"),
    [
        pytest.param(b"{}", "", "neither", id="empty-object"),
        pytest.param(b"[1, 2]", "", "neither", id="list"),
        pytest.param(b"just text", "", "neither", id="text"),
        pytest.param(b"\xff\xfe\x00", "", "YAML", id="binary"),
        pytest.param(b'{"policy": {"nam": 1}}', "/policy/nam", "Unknown field", id="typo"),
        pytest.param(b'{"policy": {"name": "consort"}}', "/policy/name", "profiles", id="ours"),
        pytest.param(b'{"policy": 1, "endpoints": 2}', "/policy", "object", id="types"),
        pytest.param(b'{"a":' * 50_000, "", "YAML", id="deep"),
        pytest.param(b'{"a":"' + b"x" * 9_000_000, "", "at most", id="huge"),
        pytest.param(HEAD.encode() + b"plugins: [{type: nope}]", "/plugins/0/type", "", id="type"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    raw: bytes, pointer: str, words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        exchange(raw)

    assert caught.value.pointer == pointer
    assert words in caught.value.message


@pytest.mark.parametrize("option", ["into", "base"])
def test_an_option_of_the_other_direction_is_refused(option: str) -> None:
    ours = encoded({"policy": exchange(WEIGHTED.encode()).tree["policy"]})
    raw = ours if option == "into" else WEIGHTED.encode()

    with pytest.raises(DocumentError):
        exchange(raw, **{option: b"{}"})  # type: ignore[arg-type]
