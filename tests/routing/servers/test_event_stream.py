"""Slices of batches: what is applied between two looks at the clock. The rest: test_events.py."""

import asyncio
from itertools import chain

import msgspec
import pytest
import zmq

from routing.core.kv_events import Batch, Cleared, Event, Removed, Stored
from routing.engines.vllm import ENGINE
from routing.servers import event_stream
from routing.servers.event_sources import EventSource
from routing.servers.event_stream import SLICE_BLOCKS, EventStream, _slices
from tests.routing.pool.builders import endpoint_dict, make_router


def stored(first: int, count: int, *, size: int = 2) -> Stored:
    return Stored(
        list(range(first, first + count)),
        first - 1 if first else None,
        list(range(first * size, (first + count) * size)),
        size,
        extra_keys=[[str(number)] for number in range(count)],
        medium="GPU",
    )


def test_a_small_batch_is_one_slice() -> None:
    events: list[Event] = [stored(0, 5), Removed([1]), Cleared()]

    ((batch, part, is_last),) = _slices(Batch(events, sent_at=1.0))

    assert (part, is_last, batch.sent_at) == (events, True, 1.0)


def test_a_long_event_is_cut_into_a_chain() -> None:
    count = 2 * SLICE_BLOCKS + 500
    event = stored(100, count)

    slices = list(_slices(Batch([event, Removed([1])], sent_at=1.0)))

    pieces = [piece for _, part, _ in slices for piece in part if isinstance(piece, Stored)]
    assert [is_last for _, _, is_last in slices] == [False, False, True]
    assert [len(piece.block_hashes) for piece in pieces] == [SLICE_BLOCKS, SLICE_BLOCKS, 500]
    for name in ("block_hashes", "token_ids", "extra_keys"):
        joined = list(chain.from_iterable(getattr(piece, name) for piece in pieces))
        assert joined == getattr(event, name)
    assert [piece.parent_block_hash for piece in pieces] == [
        99,
        99 + SLICE_BLOCKS,
        99 + 2 * SLICE_BLOCKS,
    ]


@pytest.mark.parametrize("size", [0, -1, 3])
def test_an_event_that_does_not_fit_together_stays_whole(size: int) -> None:
    event = stored(0, SLICE_BLOCKS + 1)
    event.block_size = size

    slices = list(_slices(Batch([event], sent_at=1.0)))

    assert [part for _, part, _ in slices] == [[event], []]


def test_a_long_removal_is_cut() -> None:
    names: list[int | bytes] = list(range(2 * SLICE_BLOCKS + 5))
    event = Removed(names, medium="CPU", group_idx=3)

    slices = list(_slices(Batch([event, Cleared()], sent_at=1.0)))

    parts = [part for _, part, _ in slices]
    assert [len(part) for part in parts] == [1, 1, 2]
    assert [is_last for _, _, is_last in slices] == [False, False, True]
    removals = [one for part in parts for one in part if isinstance(one, Removed)]
    assert [name for one in removals for name in one.block_hashes] == names
    assert {(one.medium, one.group_idx) for one in removals} == {("CPU", 3)}


async def test_what_a_shared_port_brings_too_fast_is_lost_and_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_stream, "MAX_WAITING_BYTES", 1000)
    router = make_router(endpoint_dict("a"))
    known = router._known
    source = EventSource(address="tcp://*:0", replay_address=None, topic="", binds=True)
    with zmq.Context() as context:
        stream = EventStream(
            known.caches.events, known.table.instances[0], ENGINE.event_decoder(), source, context
        )
        stream.start()
        count = 2 * SLICE_BLOCKS
        event = ["BlockStored", list(range(1, count + 1)), None, [7] * 16 * count, 16, None]
        payload = msgspec.msgpack.encode([1.0, [event]])

        for number in range(3):
            stream.take([b"", number.to_bytes(8, "big"), payload])
        waiting = len(stream._work)
        async with asyncio.timeout(10):
            while stream._work:
                await asyncio.sleep(0.001)
        stream.stop()

    assert waiting == 3
    assert stream._work_bytes == 0
