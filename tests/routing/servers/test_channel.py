"""Frames between a supervisor and its processes."""

import asyncio
import socket
import struct

import pytest

from routing.servers.channel import MAX_FRAME_BYTES, Beat, Channel, Hello, Kind, pack, unpack


class End:
    """One end of a channel that keeps what came."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.lost = asyncio.Event()

    async def open(self, own: socket.socket) -> Channel:
        return await Channel.open(
            own,
            on_frame=lambda kind, payload: self.frames.append((kind, payload)),
            on_lost=self.lost.set,
        )

    async def until(self, count: int) -> list[tuple[int, bytes]]:
        async with asyncio.timeout(10):
            while len(self.frames) < count:
                await asyncio.sleep(0.005)
        return self.frames


async def test_frames_of_any_size_come_in_order() -> None:
    near, far = socket.socketpair()
    writer, reader = await End().open(near), End()
    await reader.open(far)
    payloads = [b"", b"x", b"y" * 300_000, b"z" * 10]

    for payload in payloads:
        assert writer.send(Kind.USAGE, payload)

    assert await reader.until(4) == [(Kind.USAGE, payload) for payload in payloads]
    writer.close()


async def test_what_was_sent_before_the_end_is_still_read() -> None:
    near, far = socket.socketpair()
    writer, reader = await End().open(near), End()
    for number in range(100):
        writer.send(Kind.USAGE, b"%d" % number)
    writer.close()
    await writer.closed()

    await reader.open(far)

    frames = await reader.until(100)
    assert frames[-1] == (Kind.USAGE, b"99")
    async with asyncio.timeout(10):
        await reader.lost.wait()


async def test_to_an_end_that_is_gone_nothing_is_sent() -> None:
    near, far = socket.socketpair()
    end = End()
    writer = await end.open(near)
    far.close()
    async with asyncio.timeout(10):
        await end.lost.wait()

    assert not writer.is_open
    assert writer.send(Kind.ASK) is False
    assert writer.post(Kind.GOSSIP, b"x") is False
    assert writer.dropped == 1


async def test_gossip_is_dropped_when_the_other_side_does_not_read() -> None:
    near, far = socket.socketpair()
    writer = await End().open(near)

    sent = [writer.post(Kind.GOSSIP, b"x" * 100_000) for _ in range(100)]

    assert sent[0] is True
    assert sent[-1] is False
    assert writer.dropped == sent.count(False)
    assert writer.send(Kind.ASK, b"must arrive") is True
    writer.abort()
    far.close()


async def test_a_frame_beyond_all_bounds_ends_the_channel() -> None:
    near, far = socket.socketpair()
    reader = End()
    await reader.open(near)

    far.sendall(struct.pack("<IB", MAX_FRAME_BYTES + 1, Kind.USAGE))

    async with asyncio.timeout(10):
        await reader.lost.wait()
    assert reader.frames == []
    far.close()


@pytest.mark.parametrize(
    "content",
    [
        Beat(
            complete_until=1.5,
            connections=1,
            taken=2,
            epoch=3,
            total=4,
            failed=0,
            by_status={200: 4},
        ),
    ],
)
def test_payloads_come_out_as_they_went_in(content: Beat) -> None:
    assert unpack(pack(content), type(content)) == content


def test_a_process_is_a_node_of_its_router() -> None:
    assert _hello().node == "r1/2"


def _hello() -> Hello:
    return Hello(
        name="r1",
        number=2,
        processes=4,
        state_dir="state",
        drain_seconds=1.0,
        documents=[],
        drained=[],
        tokenizers_dir="tokenizers",
    )
