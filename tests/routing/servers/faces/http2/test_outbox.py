"""What goes out, and when."""

import asyncio
from typing import cast

from routing.servers.faces.http2.frames import DEFAULT_WINDOW
from routing.servers.faces.http2.outbox import BURST_BYTES, UNSENT_BYTES, Outbox


class Line(asyncio.Transport):
    """Keeps what is written; takes nothing away."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.written))

    def abort(self) -> None:
        self.is_aborted = True


def opened() -> tuple[Outbox, Line]:
    outbox, line = Outbox(), Line()
    outbox.open(cast(asyncio.Transport, line))
    return outbox, line


async def test_what_is_written_in_one_turn_goes_out_as_one() -> None:
    outbox, line = opened()
    outbox.write(b"a")
    outbox.write(b"b")
    await asyncio.sleep(0)

    assert line.written == [b"ab"]


async def test_a_corked_one_waits_for_who_corked_it() -> None:
    outbox, line = opened()
    outbox.is_corked = True
    outbox.write(b"a")
    await asyncio.sleep(0)
    assert not line.written
    outbox.flush()

    assert line.written == [b"a"]


async def test_room_is_the_least_of_window_burst_and_what_the_line_takes() -> None:
    outbox, _ = opened()
    assert outbox.room() == DEFAULT_WINDOW
    outbox.window = 2**31 - 1
    assert outbox.room() == BURST_BYTES
    outbox.write(b"x" * 100, flow=100)
    assert outbox.room() == BURST_BYTES - 100
    outbox.flush()
    assert outbox.room() == BURST_BYTES
    outbox.pause()
    assert outbox.room() == 0


async def test_a_peer_that_reads_nothing_is_cut_off() -> None:
    outbox, line = opened()
    for _ in range(2):
        outbox.write(b"x" * (UNSENT_BYTES // 2))
        outbox.flush()
    assert not line.is_aborted
    outbox.write(b"x")
    outbox.flush()

    assert line.is_aborted


async def test_a_closed_one_takes_nothing() -> None:
    outbox, line = opened()
    outbox.close()
    outbox.write(b"a")
    await asyncio.sleep(0)

    assert not line.written
