"""Peers that mean harm: what they may cost is bounded, and nobody else pays for it."""

import asyncio
from collections.abc import Callable

import pytest

from routing.servers.faces.http2 import frames, streams
from routing.servers.faces.http2.frames import Code, Setting
from tests.routing.servers.faces.http2.peer import ECHO, Echoes, Peer, grpc_message

MODULES = "routing.servers.faces.http2"
WIDE = 2**31 - 1
PING = frames.frame(frames.PING, 0, 0, b"12345678")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> int:
    """Frames without messages that a connection may send; time gives no more of them."""
    monkeypatch.setattr(f"{MODULES}.patience.MOST", 500)
    monkeypatch.setattr(f"{MODULES}.patience.PER_SECOND", 0)
    return 500


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are looked over at once, and whatever waits has waited long enough."""
    monkeypatch.setattr(f"{MODULES}.connection.LOOK_SECONDS", 0.05)
    monkeypatch.setattr(f"{MODULES}.connection.STALL_SECONDS", 0.0)


def data(number: int, payload: bytes) -> bytes:
    return b"".join(
        frames.frame(frames.DATA, 0, number, payload[at : at + 16_000])
        for at in range(0, len(payload), 16_000)
    )


async def is_served(echoes: Echoes) -> bool:
    """Whether somebody else has an answer."""
    async with Peer(echoes.port) as other:
        await other.opens_a_call()
    return True


# Floods.


def closed_stream(peer: Peer) -> bytes:
    return peer.call(1) + frames.reset(1, Code.CANCEL)


def open_stream(peer: Peer) -> bytes:
    return peer.call(1) + data(1, grpc_message(b"x"))


FLOODS: dict[str, tuple[Callable[[Peer], bytes], Callable[[Peer, int], bytes]]] = {
    "pings": (open_stream, lambda peer, at: PING),
    "settings": (open_stream, lambda peer, at: frames.settings({})),
    "windows-of-the-connection": (open_stream, lambda peer, at: frames.window_update(0, 1)),
    "windows-of-a-stream": (open_stream, lambda peer, at: frames.window_update(1, 1)),
    "priorities": (open_stream, lambda peer, at: frames.frame(frames.PRIORITY, 0, 1, bytes(5))),
    "unknown-frames": (open_stream, lambda peer, at: frames.frame(0xEE, 0, 1, b"x" * 100)),
    "goaways": (open_stream, lambda peer, at: frames.goaway(0, Code.NO_ERROR)),
    "empty-data": (open_stream, lambda peer, at: frames.frame(frames.DATA, 0, 1)),
    "padding-alone": (
        open_stream,
        lambda peer, at: frames.frame(frames.DATA, frames.PADDED, 1, b"\xff" + bytes(255)),
    ),
    "a-message-byte-by-byte": (
        lambda peer: open_stream(peer) + data(1, grpc_message(b"x" * 100_000)[:99]),
        lambda peer, at: frames.frame(frames.DATA, 0, 1, b"x"),
    ),
    "data-of-a-closed-stream": (closed_stream, lambda peer, at: data(1, b"x")),
    "resets-of-a-closed-stream": (closed_stream, lambda peer, at: frames.reset(1, Code.CANCEL)),
    "headers-of-a-closed-stream": (closed_stream, lambda peer, at: peer.call(1)),
    "streams-opened-and-reset": (
        open_stream,
        lambda peer, at: peer.call(3 + 2 * at) + frames.reset(3 + 2 * at, Code.CANCEL),
    ),
    "streams-opened-and-left-empty": (
        open_stream,
        lambda peer, at: peer.call(3 + 2 * at) + frames.frame(0, 1, 3 + 2 * at),
    ),
    "streams-of-no-method": (open_stream, lambda peer, at: peer.call(3 + 2 * at, "/no/method")),
}


@pytest.mark.parametrize(("before", "flood"), FLOODS.values(), ids=FLOODS)
async def test_a_flood_of_frames_without_messages_ends_the_connection(
    impatient: int,
    before: Callable[[Peer], bytes],
    flood: Callable[[Peer, int], bytes],
) -> None:
    echoes = Echoes()
    port = await echoes.start()
    async with Peer(port) as peer:
        await peer.greet()
        await peer.say(before(peer) + b"".join(flood(peer, at) for at in range(impatient + 20)))

        assert await peer.broken() == Code.ENHANCE_YOUR_CALM
        assert all(call.is_closed for call in echoes.calls)
        assert await is_served(echoes)
    await echoes.server.stop(drain_seconds=0)


async def test_streams_with_messages_may_be_reset_as_often_as_they_come(impatient: int) -> None:
    """A gateway whose clients leave resets what it has begun."""
    echoes = Echoes()
    async with Peer(await echoes.start()) as peer:
        await peer.greet()
        for number in range(1, 4 * impatient, 2):
            await peer.say(peer.call(number) + data(number, grpc_message(b"x")))
            await peer.say(frames.window_update(0, 6) + frames.reset(number, Code.CANCEL))
        await peer.say(PING)
        assert (await peer.until(frames.PING)).flags == frames.ACK
    await echoes.server.stop(drain_seconds=0)


# Header blocks.

INDEXED = b"\x40\x01a\x7f" + bytes((0xA1, 0x1E)) + b"v" * 4_000
"""A header of 4,000 bytes for the dynamic table: entry 62."""
BLOCKS = {
    "bomb": (INDEXED + b"\xbe" * 100, Code.COMPRESSION_ERROR),
    "ever-changing-table": (b"\x20" * 10_000 + b"\x83", Code.COMPRESSION_ERROR),
    "table-larger-than-allowed": (b"\x3f\xe2\x7f\x83", Code.COMPRESSION_ERROR),
    "endless-number": (b"\xff" * 10_000, Code.COMPRESSION_ERROR),
    "entry-that-is-not-there": (b"\xfe", Code.COMPRESSION_ERROR),
    "broken-huffman": (b"\x00\x84\xff\xff\xff\xff\x00", Code.COMPRESSION_ERROR),
    "longer-than-the-block": (b"\x00\x7f\xff\xff\x03a", Code.COMPRESSION_ERROR),
    "long": (b"\x83" * 16_384, Code.COMPRESSION_ERROR),
}


@pytest.mark.parametrize(("block", "code"), BLOCKS.values(), ids=BLOCKS)
async def test_a_header_block_that_means_harm_ends_the_connection_in_a_short_sentence(
    echoes: Echoes, block: bytes, code: Code
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, block))

        told = await peer.until(frames.GOAWAY)

    assert int.from_bytes(told.payload[4:8], "big") == code
    assert len(told.payload) < 200


@pytest.mark.parametrize("piece", [b"", b"\x83"])
async def test_a_header_block_in_many_pieces_ends_the_connection(
    echoes: Echoes, piece: bytes
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        more = frames.frame(frames.CONTINUATION, 0, 1, piece)
        await peer.say(frames.frame(frames.HEADERS, 0, 1, b"\x83") + more * 20)

        assert await peer.broken() == Code.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("number", [0, 2])
async def test_a_client_opens_neither_stream_zero_nor_even_ones(
    echoes: Echoes, number: int
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(peer.call(number))

        assert await peer.broken() == Code.PROTOCOL_ERROR
    assert not echoes.calls


# Streams.


async def test_a_number_is_used_once_and_numbers_do_not_go_down(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.opens_a_call(5)
        await peer.say(frames.reset(5, Code.CANCEL))
        for number in (5, 3, 1):
            await peer.say(peer.call(number) + data(number, grpc_message(b"again")))
        await peer.say(peer.call(7) + data(7, grpc_message(b"next")))
        await peer.until(frames.DATA, 7)

    assert [call.seen for call in echoes.calls] == [[b"x"], [b"next"]]


async def test_nothing_is_taken_after_the_end_of_a_stream(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=0)
        await peer.say(peer.call(1) + data(1, grpc_message(b"x")))
        await peer.say(frames.frame(frames.DATA, frames.END_STREAM, 1))
        # It is still there, as its answer cannot be sent.
        await peer.say(data(1, grpc_message(b"late")) + peer.call(1, flags=5) + PING)
        await peer.until(frames.PING)

    assert [call.seen for call in echoes.calls] == [[b"x"]]


async def test_a_goaway_of_the_peer_ends_nothing(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.opens_a_call()
        await peer.say(frames.goaway(0, Code.NO_ERROR) + data(1, grpc_message(b"y")))

        assert (await peer.until(frames.DATA, 1)).payload == grpc_message(b"y")


async def test_a_handler_that_fails_takes_no_other_stream_with_it(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.opens_a_call()
        await peer.say(peer.call(3) + data(3, grpc_message(b"fail")))
        _, headers = await peer.answer(3)
        await peer.say(data(1, grpc_message(b"y")))
        await peer.until(frames.DATA, 1)

    assert headers["grpc-status"] == str(streams.INTERNAL)
    assert echoes.calls[1].is_closed


# Windows.


async def test_a_window_that_settings_make_too_large_ends_the_connection(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.opens_a_call()
        await peer.say(frames.window_update(1, WIDE - frames.DEFAULT_WINDOW))
        await peer.say(frames.settings({Setting.INITIAL_WINDOW_SIZE: WIDE}))

        assert await peer.broken() == Code.FLOW_CONTROL_ERROR


async def test_of_many_windows_in_one_frame_the_last_counts(echoes: Echoes) -> None:
    values = [bytes((0, Setting.INITIAL_WINDOW_SIZE)) + size.to_bytes(4, "big") for size in (0, 9)]
    async with Peer(echoes.port) as peer:
        await peer.greet()
        await peer.say(frames.frame(frames.SETTINGS, 0, 0, b"".join(values * 1_000)))
        await peer.say(peer.call(1) + data(1, grpc_message(b"m" * 100)))

        assert len((await peer.until(frames.DATA, 1)).payload) == 9


async def test_an_answer_passes_a_window_that_opens_byte_by_byte(echoes: Echoes) -> None:
    message = grpc_message(bytes(range(100)))
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=0)
        await peer.say(peer.call(1) + data(1, message))
        got = b""
        for _ in message:
            await peer.say(frames.window_update(1, 1))
            got += (await peer.until(frames.DATA, 1)).payload

    assert got == message


async def test_streams_that_wait_for_the_connections_window_take_turns(echoes: Echoes) -> None:
    message = grpc_message(b"m" * 60_000)
    async with Peer(echoes.port) as peer:
        await peer.greet()
        numbers = [1, 3, 5, 7]
        for number in numbers:
            await peer.say(peer.call(number) + data(number, message))
        got = dict.fromkeys(numbers, 0)
        while sum(got.values()) < len(numbers) * len(message):
            found = await peer.until(frames.DATA)
            got[found.stream] += len(found.payload)
            await peer.say(frames.window_update(0, len(found.payload)))

    assert set(got.values()) == {len(message)}


async def test_a_peer_that_reads_late_gets_all_of_a_large_answer(
    monkeypatch: pytest.MonkeyPatch, echoes: Echoes
) -> None:
    """What its windows allow is written as its line takes it, and not all at once."""
    monkeypatch.setattr(f"{MODULES}.outbox.UNSENT_BYTES", 2 * 2**20)
    message = grpc_message(b"m" * (20 * 2**20))
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=WIDE)
        await peer.say(frames.window_update(0, WIDE - frames.DEFAULT_WINDOW) + peer.call(1))
        await peer.say(data(1, message))
        got = 0
        while got < len(message):
            got += len((await peer.until(frames.DATA, 1)).payload)

    assert got == len(message)


@pytest.mark.usefixtures("hasty")
async def test_an_answer_that_is_not_taken_is_given_up(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.greet(initial_window_size=0)
        await peer.say(peer.call(1) + data(1, grpc_message(b"m")))
        reset = await peer.until(frames.RST_STREAM, 1)

    assert int.from_bytes(reset.payload, "big") == Code.CANCEL
    assert echoes.calls[0].is_closed


@pytest.mark.usefixtures("hasty")
async def test_a_stream_without_a_message_is_given_up_and_one_with_is_not(echoes: Echoes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.opens_a_call()
        await peer.say(peer.call(3))
        assert await peer.until(frames.RST_STREAM, 3)
        await peer.say(data(1, grpc_message(b"y")))
        await peer.until(frames.DATA, 1)

    assert [call.is_closed for call in echoes.calls] == [False, True]


# Memory.


@pytest.mark.parametrize("is_whole", [True, False])
async def test_who_lets_too_much_lie_is_cut_off_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, echoes: Echoes, *, is_whole: bool
) -> None:
    """Answers that are not taken, or messages that are never whole."""
    monkeypatch.setattr(f"{MODULES}.server.MOST_KEPT_BYTES", 2**20)
    message = grpc_message(b"m" * 250_000)
    async with Peer(echoes.port) as other, Peer(echoes.port) as peer:
        await other.greet(initial_window_size=0)
        await other.say(other.call(1) + data(1, message[:200_000]) + PING)
        await other.until(frames.PING)
        await peer.greet(initial_window_size=0)
        told = grpc_message(b"m" * 600_000)
        for number in (1, 3):
            await peer.say(peer.call(number) + data(number, told if is_whole else told[:-1]))
        assert await peer.is_gone()
        await other.say(data(1, message[200_000:]) + PING)
        await other.until(frames.PING)

        assert len(echoes.server.connections) == 1


# The begin and the end.


@pytest.mark.parametrize(
    "rubbish",
    [b"\x16\x03\x01\x02\x00\x01", b"\0" * 100, frames.PREFACE[:-1] + b"X", b"PRI * HTTP/1.1\r\n"],
)
async def test_rubbish_in_place_of_the_preface_ends_the_connection(
    echoes: Echoes, rubbish: bytes
) -> None:
    async with Peer(echoes.port) as peer:
        await peer.say(rubbish)

        assert await peer.broken() == Code.PROTOCOL_ERROR


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("begin", [b"", frames.PREFACE[:10]])
async def test_who_does_not_begin_is_cut_off(echoes: Echoes, begin: bytes) -> None:
    async with Peer(echoes.port) as peer:
        await peer.say(begin)

        assert await peer.is_gone()


async def test_who_broke_a_rule_and_reads_nothing_keeps_no_stream(
    monkeypatch: pytest.MonkeyPatch, echoes: Echoes
) -> None:
    monkeypatch.setattr(f"{MODULES}.connection.LINGER_SECONDS", 0.05)
    async with Peer(echoes.port) as peer:
        peer.writer.transport.pause_reading()
        await peer.greet(initial_window_size=WIDE)
        await peer.say(frames.window_update(0, WIDE - frames.DEFAULT_WINDOW) + peer.call(1))
        await peer.say(data(1, grpc_message(b"m" * (16 * 2**20))))
        async with asyncio.timeout(10):
            while not echoes.calls[0].seen if echoes.calls else True:
                await asyncio.sleep(0.01)
        await peer.say(frames.frame(frames.PUSH_PROMISE, 0, 1))
        async with asyncio.timeout(10):
            while echoes.server.connections:
                await asyncio.sleep(0.01)

    assert echoes.calls[0].is_closed


async def test_peers_that_break_rules_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, echoes: Echoes
) -> None:
    for _ in range(5):
        async with Peer(echoes.port) as peer:
            await peer.say(b"GET /" + ECHO.encode())
            await peer.broken()

    assert len([one for one in caplog.records if "rules of HTTP/2" in one.message]) == 1
