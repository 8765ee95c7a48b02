"""Payloads of KV events in every form that is about, and in none."""

import base64
import contextlib
import json
import struct
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from routing.core.event_decoding import MAX_PAYLOAD_BYTES, EventDecoder
from routing.core.kv_events import Cleared, EventDecodeError, Removed, Stored

SAMPLES = Path(__file__).parent / "samples"
VLLM = [
    json.loads(line) for line in (SAMPLES / "vllm-0.32.0-kv-events.jsonl").read_text().splitlines()
]
SIMULATOR = [
    json.loads(line)
    for line in (SAMPLES / "llm-d-inference-sim-0.10.2-kv-events.jsonl").read_text().splitlines()
]
encode = msgspec.msgpack.encode
STORED = {
    "type": "BlockStored",
    "block_hashes": [11, 12],
    "parent_block_hash": None,
    "token_ids": [1, 2, 3, 4],
    "block_size": 2,
}


def as_number(value: Any) -> Any:
    """Hashes of 32 bytes, as the samples show them, in the form that they are indexed in."""
    if isinstance(value, dict) and "__bytes_hex__" in value:
        return int(value["__bytes_hex__"][-16:], 16)
    return value


def expected(event: dict[str, Any]) -> dict[str, Any]:
    optional = dict.fromkeys(fields_of(event["type"]))
    found = {**optional, **event}
    if "block_hashes" in found:
        found["block_hashes"] = [as_number(value) for value in found["block_hashes"]]
    if "parent_block_hash" in found:
        found["parent_block_hash"] = as_number(found["parent_block_hash"])
    return found


def fields_of(tag: str) -> tuple[str, ...]:
    kinds = {"BlockStored": Stored, "BlockRemoved": Removed, "AllBlocksCleared": Cleared}
    return kinds[tag].__struct_fields__


def fields(event: Any) -> dict[str, Any]:
    """All fields of a decoded event, with its tag."""
    found: dict[str, Any] = msgspec.structs.asdict(event)
    tag = {Stored: "BlockStored", Removed: "BlockRemoved", Cleared: "AllBlocksCleared"}
    return {"type": next(name for kind, name in tag.items() if isinstance(event, kind)), **found}


@pytest.mark.lesson("X06")
@pytest.mark.parametrize(
    "sample", [sample for sample in VLLM if sample["payload_b64"]], ids=lambda s: s["file"][:12]
)
def test_recorded_batches_decode_exactly(sample: dict[str, Any]) -> None:
    batch = EventDecoder().decode(base64.b64decode(sample["payload_b64"]))

    stamp, events, rank = sample["decoded"]
    assert (batch.sent_at, batch.rank, batch.unknown_events) == (stamp, rank, 0)
    assert [fields(event) for event in batch.events] == [expected(event) for event in events]


@pytest.mark.parametrize("sample", SIMULATOR, ids=lambda s: str(s["batch"][1][0])[:20])
def test_the_other_publishers_arrays_and_maps_decode_alike(sample: dict[str, Any]) -> None:
    batch = EventDecoder().decode(encode(sample["batch"]))

    assert batch.unknown_events == 0
    assert len(batch.events) == len(sample["batch"][1])


@pytest.mark.lesson("X06")
@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([1.5, [STORED], 3], id="maps-in-array"),
        pytest.param({"ts": 1.5, "events": [STORED], "data_parallel_rank": 3}, id="maps-in-map"),
        pytest.param([1.5, [["BlockStored", [11, 12], None, [1, 2, 3, 4], 2]], 3], id="arrays"),
        pytest.param(
            {
                "ts": 1.5,
                "events": [["BlockStored", [11, 12], None, [1, 2, 3, 4], 2]],
                "data_parallel_rank": 3,
            },
            id="arrays-in-map",
        ),
        pytest.param(
            [1.5, [["BlockStored", [11, 12], None, [1, 2, 3, 4], 2, 7, "GPU", None, None, 0, "x",
                    None, "local", "owner"]], 3, "further"],
            id="further-fields",
        ),
    ],
)  # fmt: skip
def test_every_encoding_gives_the_same_event(batch: Any) -> None:
    found = EventDecoder().decode(encode(batch))

    (event,) = found.events
    assert isinstance(event, Stored)
    assert (event.block_hashes, event.parent_block_hash, event.token_ids, event.block_size) == (
        [11, 12],
        None,
        [1, 2, 3, 4],
        2,
    )
    assert (found.rank, found.sent_at) == (3, 1.5)


def test_a_decoder_follows_a_publisher_that_changes_its_encoding() -> None:
    decoder = EventDecoder()

    for batch in (
        [1, [STORED]],
        [1, [["BlockRemoved", [5]]]],
        [1, [STORED, ["BlockRemoved", [5]]]],
    ):
        assert len(decoder.decode(encode(batch)).events) == len(batch[1])


@pytest.mark.lesson("X06")
def test_an_event_of_a_new_shape_is_counted_and_the_others_are_read() -> None:
    new = {"type": "BlockMoved", "block_hashes": [1], "to": "CPU"}
    wrong = {**STORED, "block_hashes": "many"}

    batch = EventDecoder().decode(encode([1.0, [STORED, new, wrong, 7, []], 0]))

    assert (len(batch.events), batch.unknown_events) == (1, 4)


def test_hashes_of_32_bytes_are_their_last_8() -> None:
    digest = bytes(range(32))
    stored = {**STORED, "block_hashes": [digest, digest], "parent_block_hash": digest}

    batch = EventDecoder().decode(encode([1.0, [stored, ["BlockRemoved", [digest]]]]))

    number = int.from_bytes(digest[-8:], "big")
    first, second = batch.events
    assert isinstance(first, Stored)
    assert isinstance(second, Removed)
    assert first.block_hashes == [number, number]
    assert (first.parent_block_hash, second.block_hashes) == (number, [number])


def test_signed_and_unsigned_numbers_of_64_bits_are_read() -> None:
    batch = EventDecoder().decode(encode([1, [["BlockRemoved", [-(2**63), 2**64 - 1]]]]))

    (event,) = batch.events
    assert isinstance(event, Removed)
    assert event.block_hashes == [-(2**63), 2**64 - 1]


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xc1", id="reserved-byte"),
        pytest.param(encode([1.0]), id="no-events"),
        pytest.param(encode([1.0, "events"]), id="events-are-text"),
        pytest.param(encode(["now", []]), id="time-is-text"),
        pytest.param(encode([1.0, [], "first"]), id="rank-is-text"),
        pytest.param(encode({"time": 1}), id="other-map"),
        pytest.param(encode([1.0, [STORED]])[:-3], id="cut"),
        pytest.param(b"\x91" * 100_000, id="deep"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="endless-array"),
        pytest.param(struct.pack(">BI", 0xC6, 2**31), id="endless-bytes"),
        pytest.param(bytes(MAX_PAYLOAD_BYTES + 1), id="large"),
    ],
)
def test_what_is_no_batch_is_refused(payload: bytes) -> None:
    with pytest.raises(EventDecodeError):
        EventDecoder().decode(payload)


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_no_payload_does_anything_else(payload: bytes) -> None:
    with contextlib.suppress(EventDecodeError):
        EventDecoder().decode(payload)


JSON = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5) | st.binary(max_size=40)
    | st.sampled_from(["BlockStored", "BlockRemoved", "AllBlocksCleared", "type", "block_hashes"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(JSON, max_size=5))
def test_odd_events_are_events_or_counted(events: list[Any]) -> None:
    batch = EventDecoder().decode(encode([1.0, events, 0]))

    assert len(batch.events) + batch.unknown_events == len(events)


def test_numbers_and_digests_may_be_mixed_in_one_event() -> None:
    digest = bytes(24) + (7).to_bytes(8, "big")
    event = ["BlockStored", [1, digest], digest, [0] * 32, 16, None]

    batch = EventDecoder().decode(msgspec.msgpack.encode([0.0, [event], 0]))

    stored = batch.events[0]
    assert isinstance(stored, Stored)
    assert (stored.block_hashes, stored.parent_block_hash) == ([1, 7], 7)
