"""Whatever a peer sends, nothing of it is left when its connection is gone."""

import asyncio
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.connection import Connection
from tests.routing.servers.faces.http2.peer import ECHO, Echo, Echoes, grpc_message

PATH = frames.literal(b":path", ECHO.encode())


class Line(asyncio.Transport):
    """Takes what is written, and pauses its writer as a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.is_closed = True

    abort = close


NUMBERS = st.integers(0, 9)
PAYLOADS = st.one_of(
    st.binary(max_size=20),
    st.just(PATH),
    st.binary(max_size=9).map(grpc_message),
    st.integers(0, 2**31 - 1).map(lambda value: value.to_bytes(4, "big")),
    st.tuples(st.integers(0, 6), st.integers(0, 2**31 - 1)).map(
        lambda told: told[0].to_bytes(2, "big") + told[1].to_bytes(4, "big")
    ),
)
FRAMES = st.builds(frames.frame, st.integers(0, 10), st.integers(0, 255), NUMBERS, PAYLOADS)
LIKELY = st.one_of(
    st.builds(lambda number: frames.frame(frames.HEADERS, 4, number, PATH), NUMBERS),
    st.builds(
        lambda number, flags, text: frames.frame(frames.DATA, flags, number, grpc_message(text)),
        NUMBERS,
        st.integers(0, 1),
        st.sampled_from([b"", b"x", b"fail", b"long" * 1000]),
    ),
    st.builds(lambda number: frames.reset(number, frames.Code.CANCEL), NUMBERS),
    st.builds(frames.window_update, NUMBERS, st.integers(0, 100)),
    st.builds(
        lambda size: frames.settings({frames.Setting.INITIAL_WINDOW_SIZE: size}),
        st.integers(0, 100),
    ),
)
STEPS = st.lists(st.one_of(LIKELY, LIKELY, LIKELY, FRAMES, st.booleans()), max_size=30)


async def played(steps: list[bytes | bool]) -> tuple[Echoes, Connection]:
    """Bytes are received; a truth pauses or resumes the line."""
    echoes, line = Echoes(), Line()
    connection = Connection(echoes.server)
    connection.connection_made(cast(asyncio.Transport, line))
    connection.data_received(frames.PREFACE)
    for step in steps:
        if line.is_closed:
            break
        if isinstance(step, bytes):
            connection.data_received(step)
        elif step:
            connection.pause_writing()
        else:
            connection.resume_writing()
    await asyncio.sleep(0)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return echoes, connection


def is_left(call: Echo) -> bool:
    return not call.is_closed


@given(steps=STEPS)
def test_nothing_is_left_of_a_connection(steps: list[bytes | bool]) -> None:
    echoes, connection = asyncio.run(played(steps))

    assert not [call for call in echoes.calls if is_left(call)]
    assert not connection.streams
    assert connection.kept_bytes == 0
    assert not echoes.server.connections
