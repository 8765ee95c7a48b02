"""Connections of HTTP/2: what a peer may do, and what ends it."""

import asyncio

import pytest

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.connection import CONNECTION_WINDOW, STREAM_WINDOW
from routing.servers.faces.http2.frames import Code, Setting
from tests.routing.servers.faces.http2.peer import ECHO, Echoes, Peer, grpc_message


def data(number: int, payload: bytes, *, ends: bool = False) -> bytes:
    flags = frames.END_STREAM if ends else 0
    return b"".join(
        frames.frame(frames.DATA, flags if at + 16_000 >= len(payload) else 0, number, piece)
        for at in range(0, len(payload), 16_000)
        for piece in [payload[at : at + 16_000]]
    )


async def test_a_call_is_answered_and_ended(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(peer.call(1) + data(1, grpc_message(b"hello"), ends=True))

        body, headers = await peer.answer(1)

    assert body == grpc_message(b"hello")
    assert headers[":status"] == "200"
    assert headers["grpc-status"] == "0"


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_bytes_may_arrive_in_any_pieces(echoes: Echoes, size: int) -> None:
    async with Peer(echoes.port) as peer:
        told = frames.PREFACE + frames.settings({}) + peer.call(1)
        told += data(1, grpc_message(b"") + grpc_message(b"two") * 2, ends=True)
        for at in range(0, len(told), size):
            await peer.say(told[at : at + size])
            await asyncio.sleep(0)

        body, _ = await peer.answer(1)

    assert body == grpc_message(b"") + grpc_message(b"two") * 2


async def test_header_blocks_are_read_with_tables_padding_priority_and_continuation(
    echoes: Echoes,
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        for number in (1, 3, 5):
            # From the second on a block only points into the table.
            await peer.say(peer.call(number) + data(number, grpc_message(b"x"), ends=True))
            assert (await peer.answer(number))[1]["grpc-status"] == "0"
        block = peer.call(7)[frames.HEAD_BYTES :]
        flags = frames.PADDED | frames.PRIORITISED
        padded = b"\x03" + b"\0" * 5 + block[:4] + b"\0" * 3
        await peer.say(
            frames.frame(frames.HEADERS, flags, 7, padded)
            + frames.frame(frames.CONTINUATION, 0, 7, block[4:9])
            + frames.frame(frames.CONTINUATION, frames.END_HEADERS, 7, block[9:])
            + frames.frame(frames.PRIORITY, 0, 7, b"\0" * 5)
            + frames.frame(0xEE, 0, 7, b"unknown")
            + frames.frame(frames.DATA, frames.PADDED, 7, b"\x02" + grpc_message(b"y") + b"\0\0")
            + frames.frame(frames.DATA, frames.END_STREAM, 7)
        )

        body, _ = await peer.answer(7)

    assert body == grpc_message(b"y")


async def test_a_changed_table_is_not_mistaken_for_the_one_before(echoes: Echoes) -> None:
    """Two blocks of equal bytes call two methods when the table changed in between."""
    async with Peer(echoes.port) as peer:
        peer.encoder.header_table_size = 64
        await peer.greet()
        statuses = []
        for number, path in ((1, ECHO), (3, ECHO), (5, "/x.No/Say"), (7, "/x.No/Say"), (9, ECHO)):
            await peer.say(peer.call(number, path) + data(number, grpc_message(b"x"), ends=True))
            statuses.append((await peer.answer(number))[1]["grpc-status"])

    assert statuses == ["0", "0", "12", "12", "0"]


async def test_pings_and_settings_are_answered(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        told = await peer.until(frames.SETTINGS)
        acknowledged = await peer.until(frames.SETTINGS)
        await peer.say(frames.frame(frames.PING, 0, 0, b"12345678"))
        pong = await peer.until(frames.PING)

    settings = dict(frames.read_settings(told.payload))
    assert settings[Setting.INITIAL_WINDOW_SIZE] == STREAM_WINDOW
    assert settings[Setting.MAX_CONCURRENT_STREAMS] > 0
    assert acknowledged.flags == frames.ACK
    assert (pong.flags, pong.payload) == (frames.ACK, b"12345678")


async def test_nothing_is_sent_beyond_the_peers_windows(echoes: Echoes) -> None:
    message = grpc_message(b"m" * 100_000)
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=1000)
        await peer.say(peer.call(1) + data(1, message, ends=True))
        await peer.until(frames.HEADERS)
        first = await peer.until(frames.DATA)
        await peer.say(frames.frame(frames.PING, 0, 0, b"12345678"))
        assert (await peer.frame()).kind == frames.PING

        # The connection's own window is the next to end.
        await peer.say(frames.window_update(1, 200_000))
        got = first.payload
        while len(got) < frames.DEFAULT_WINDOW:
            got += (await peer.until(frames.DATA)).payload
        assert len(got) == frames.DEFAULT_WINDOW
        await peer.say(frames.window_update(0, 200_000))
        rest, headers = await peer.answer(1)

    assert len(first.payload) == 1000
    assert got + rest == message
    assert headers["grpc-status"] == "0"


async def test_a_smaller_window_takes_back_what_was_given(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=100)
        await peer.say(peer.call(1) + data(1, grpc_message(b"m" * 500)))
        first = await peer.until(frames.DATA)
        await peer.say(frames.settings({Setting.INITIAL_WINDOW_SIZE: 50}))
        await peer.say(frames.window_update(1, 60))
        second = await peer.until(frames.DATA)

    assert (len(first.payload), len(second.payload)) == (100, 10)


async def test_room_is_given_back_as_bytes_are_read(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=2**31 - 1)
        await peer.say(frames.window_update(0, 2**31 - 1 - frames.DEFAULT_WINDOW) + peer.call(1))
        for _ in range(3):
            await peer.say(data(1, grpc_message(b"m" * (STREAM_WINDOW // 2))))
            given = await peer.until(frames.WINDOW_UPDATE, 1)
            assert int.from_bytes(given.payload, "big") >= STREAM_WINDOW // 2


async def test_a_reset_ends_the_call_and_later_frames_of_it_are_passed_over(
    echoes: Echoes,
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(peer.call(1) + data(1, grpc_message(b"x")))
        await peer.until(frames.DATA)
        await peer.say(frames.reset(1, Code.CANCEL) + data(1, grpc_message(b"late"), ends=True))
        await peer.say(peer.call(3) + data(3, grpc_message(b"next"), ends=True))
        body, _ = await peer.answer(3)

    assert body == grpc_message(b"next")
    assert echoes.calls[0].is_closed
    assert echoes.calls[0].seen == [b"x"]


async def test_a_lost_connection_ends_its_calls(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(peer.call(1) + peer.call(3) + data(1, grpc_message(b"x")))
        await peer.until(frames.DATA)
    async with asyncio.timeout(5):
        while echoes.server.connections:
            await asyncio.sleep(0.01)

    assert [call.is_closed for call in echoes.calls] == [True, True]


async def test_what_is_ended_from_here_is_reset(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(peer.call(1, "/no.Such/Method"))
        _, headers = await peer.answer(1)
        reset = await peer.until(frames.RST_STREAM, 1)
        # Frames that were on their way do not hurt.
        await peer.say(data(1, grpc_message(b"late"), ends=True) + peer.call(3))
        await peer.say(data(3, grpc_message(b"x"), ends=True))
        body, _ = await peer.answer(3)

    assert headers["grpc-status"] == "12"
    assert "/no.Such/Method" in headers["grpc-message"]
    assert int.from_bytes(reset.payload, "big") == Code.NO_ERROR
    assert body == grpc_message(b"x")


BREAKS = {
    "no-preface": (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", Code.PROTOCOL_ERROR),
    "too-large-a-frame": (
        frames.PREFACE + b"\xff\xff\xff\x00\x00\0\0\0\1",
        Code.FRAME_SIZE_ERROR,
    ),
    "data-of-no-stream": (frames.PREFACE + frames.frame(0, 0, 1, b"x"), Code.PROTOCOL_ERROR),
    "data-of-the-connection": (frames.PREFACE + frames.frame(0, 0, 0, b"x"), Code.PROTOCOL_ERROR),
    "even-stream": (
        frames.PREFACE + frames.frame(1, frames.END_HEADERS, 2, b"\x83"),
        Code.PROTOCOL_ERROR,
    ),
    "header-block-that-is-none": (
        frames.PREFACE + frames.frame(1, frames.END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff"),
        Code.COMPRESSION_ERROR,
    ),
    "header-block-cut-by-another-frame": (
        frames.PREFACE + frames.frame(1, 0, 1, b"\x83") + frames.frame(6, 0, 0, b"12345678"),
        Code.PROTOCOL_ERROR,
    ),
    "continuation-of-nothing": (
        frames.PREFACE + frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, b"\x83"),
        Code.PROTOCOL_ERROR,
    ),
    "continuation-without-end": (
        frames.PREFACE
        + frames.frame(1, 0, 1, b"\x83")
        + 5 * frames.frame(frames.CONTINUATION, 0, 1, b"\x83" * 16_000),
        Code.ENHANCE_YOUR_CALM,
    ),
    "padding-longer-than-the-frame": (
        frames.PREFACE + frames.frame(1, frames.PADDED | frames.END_HEADERS, 1, b"\x09\x83"),
        Code.PROTOCOL_ERROR,
    ),
    "short-priority": (
        frames.PREFACE + frames.frame(1, frames.PRIORITISED | frames.END_HEADERS, 1, b"\0\0"),
        Code.FRAME_SIZE_ERROR,
    ),
    "settings-of-a-stream": (frames.PREFACE + frames.frame(4, 0, 1), Code.PROTOCOL_ERROR),
    "settings-of-a-broken-size": (
        frames.PREFACE + frames.frame(4, 0, 0, b"12345"),
        Code.FRAME_SIZE_ERROR,
    ),
    "window-too-large": (
        frames.PREFACE + frames.settings({Setting.INITIAL_WINDOW_SIZE: 2**31}),
        Code.FLOW_CONTROL_ERROR,
    ),
    "frames-too-large": (
        frames.PREFACE + frames.settings({Setting.MAX_FRAME_SIZE: 100}),
        Code.PROTOCOL_ERROR,
    ),
    "ping-of-a-broken-size": (frames.PREFACE + frames.frame(6, 0, 0, b"1"), Code.FRAME_SIZE_ERROR),
    "ping-of-a-stream": (frames.PREFACE + frames.frame(6, 0, 1, b"1" * 8), Code.PROTOCOL_ERROR),
    "push": (frames.PREFACE + frames.frame(frames.PUSH_PROMISE, 0, 1), Code.PROTOCOL_ERROR),
    "window-of-nothing": (frames.PREFACE + frames.window_update(0, 0), Code.PROTOCOL_ERROR),
    "window-of-no-stream": (frames.PREFACE + frames.window_update(5, 1), Code.PROTOCOL_ERROR),
    "window-over-the-most": (
        frames.PREFACE + frames.window_update(0, 2**31 - 1),
        Code.FLOW_CONTROL_ERROR,
    ),
    "reset-of-no-stream": (frames.PREFACE + frames.reset(1, Code.CANCEL), Code.PROTOCOL_ERROR),
    "reset-of-a-broken-size": (
        frames.PREFACE + frames.frame(frames.RST_STREAM, 0, 1, b"1"),
        Code.FRAME_SIZE_ERROR,
    ),
}


@pytest.mark.parametrize(("told", "code"), BREAKS.values(), ids=BREAKS)
async def test_a_broken_rule_ends_the_connection_with_its_reason(
    echoes: Echoes, told: bytes, code: Code
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.say(told)

        assert await peer.broken() == code


@pytest.mark.parametrize("of_one_stream", [True, False])
async def test_more_than_the_windows_ends_the_connection(
    echoes: Echoes, *, of_one_stream: bool
) -> None:
    """Only frames with nothing that is read can pass a window before it is widened."""
    size = STREAM_WINDOW if of_one_stream else CONNECTION_WINDOW
    async with Peer(echoes.port) as peer:
        await peer.greet()
        connection = next(iter(echoes.server.connections))
        connection._unread = 0 if of_one_stream else size - 10
        await peer.say(peer.call(1))
        await peer.say(frames.frame(frames.PING, 0, 0, b"12345678"))
        await peer.until(frames.PING)
        connection.streams[1].unread = size - 10 if of_one_stream else 0
        await peer.say(frames.frame(frames.DATA, 0, 1, b"x" * 11))

        assert await peer.broken() == Code.FLOW_CONTROL_ERROR


async def test_streams_at_once_are_bounded() -> None:
    echoes = Echoes(most_streams=2)
    async with Peer(await echoes.start()) as peer:
        await peer.greet()
        await peer.say(peer.call(1) + peer.call(3) + peer.call(5))
        refused = await peer.until(frames.RST_STREAM)
        async with Peer(echoes.port) as other:
            await other.greet()
            await other.say(other.call(1))
            _, headers = await other.answer(1)
    await echoes.server.stop(drain_seconds=0)

    assert refused.stream == 5
    assert int.from_bytes(refused.payload, "big") == Code.REFUSED_STREAM
    assert headers["grpc-status"] == "8"


async def test_connections_at_once_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without streams gives way to the next; nobody else does."""
    monkeypatch.setattr("routing.servers.faces.http2.server.MOST_CONNECTIONS", 2)
    echoes = Echoes()
    port = await echoes.start()
    async with Peer(port) as idle, Peer(port) as busy:
        assert await idle.frame() is not None
        await busy.opens_a_call()
        async with Peer(port) as third:
            await third.opens_a_call()
            assert await idle.is_gone()
            async with Peer(port) as fourth:
                assert await fourth.is_gone()
            await busy.say(data(1, grpc_message(b"y"), ends=True))
            body, _ = await busy.answer(1)
    await echoes.server.stop(drain_seconds=0)

    assert body == grpc_message(b"y")


async def test_a_server_that_stops_lets_calls_end_and_takes_no_more(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer, Peer(echoes.port) as idle:
        await idle.greet()
        await peer.greet()
        await peer.say(peer.call(1) + data(1, grpc_message(b"x")))
        await peer.until(frames.DATA)
        stopping = asyncio.create_task(echoes.server.stop(drain_seconds=5))
        assert (await peer.until(frames.GOAWAY)).payload[:4] == b"\0\0\0\1"
        await idle.until(frames.GOAWAY)
        assert await idle.frame() is None
        await peer.say(peer.call(3))
        assert (await peer.until(frames.RST_STREAM)).stream == 3
        await peer.say(data(1, grpc_message(b"last"), ends=True))
        body, headers = await peer.answer(1)
        assert await peer.frame() is None
        await stopping

    assert body == grpc_message(b"last")
    assert headers["grpc-status"] == "0"


async def test_a_server_that_must_stop_cuts_what_does_not_end() -> None:
    echoes = Echoes()
    async with Peer(await echoes.start()) as peer:
        await peer.greet()
        await peer.say(peer.call(1))
        await peer.say(frames.frame(frames.PING, 0, 0, b"12345678"))
        await peer.until(frames.PING)
        await echoes.server.stop(drain_seconds=0.05)

    assert [call.is_closed for call in echoes.calls] == [True]
