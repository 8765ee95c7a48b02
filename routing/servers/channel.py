"""Frames between a supervisor and one of its serving processes, over socket pairs.

There is one pair for each direction: orders and reports.

A frame is a length (4 bytes, little endian), a kind (1 byte) and a payload. `send` is for what must
arrive, `post` for what may get lost when the other side is slow. The writer's death ends the
channel; what had been sent before is still read.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, cast

import msgspec

from routing.core.usage import UsageEvent
from routing.servers.faces.ports import NO_FACES, FaceOptions, Opened

MAX_FRAME_BYTES = 64 * 2**20
MAX_UNSENT_BYTES = 64 * 2**20
MAX_POSTED_BYTES = 2**20
_HEAD = struct.Struct("<IB")


class Kind(IntEnum):
    """What a frame holds."""

    HELLO = 1
    """Supervisor: everything a process needs to begin, a `Hello`."""
    READY = 2
    """Process: it can take connections, a `Beat`."""
    USAGE = 3
    """Process: usage events, in order."""
    BEAT = 4
    """Process: a `Beat`, a few times a second."""
    GOSSIP = 5
    """Both: a packet for peers."""
    LINE = 6
    """Process: a line of the ring of decisions, a `RingLine`."""
    ASK = 7
    """Supervisor: a `Question` of the admin port. Process: one for another process."""
    ANSWER = 8
    """Both: a `Reply`."""
    DRAIN = 9
    """Supervisor: take no more, finish, and end."""
    EVENTS = 10
    """Both: a message of cache events that came to a port of the first process, a `Collected`."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """How a process begins."""

    name: str
    """Name of the router."""
    number: int
    processes: int
    state_dir: str
    drain_seconds: float
    tokenizers_dir: str
    documents: list[bytes]
    drained: list[tuple[str, str]]
    host: str = "127.0.0.1"
    faces: FaceOptions = NO_FACES
    """Ports of this process for gateways."""

    @property
    def node(self) -> str:
        """Name of the process among its peers."""
        return f"{self.name}/{self.number}"


class Beat(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What a supervisor keeps of a process in case that it dies."""

    complete_until: float
    """Unix time; the usage of every attempt that ended before it was sent."""
    connections: int
    taken: int
    """Connections taken since the start."""
    epoch: int
    total: int
    failed: int
    by_status: dict[int, int]
    is_draining: bool = False
    faces: Opened = {}
    """Its ports for gateways."""


class Question(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A request of the admin port, passed on."""

    number: int
    method: str
    path: str
    query: str
    body: bytes
    secret: bytes = b""
    """The presented key, where the question is a client's."""
    process: int | None = None
    """Of a question that one process asks another: which."""


class Reply(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Its answer."""

    number: int
    status: int
    body: bytes


class RingLine(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A line of the ring of decisions, see `routing.servers.decisions`."""

    number: int
    decision_id: str
    pool: str
    tenant: str
    kind: str
    content: bytes


class Collected(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What engines sent to a port that one process has for all."""

    address: str
    frames: list[bytes]


_encoder = msgspec.msgpack.Encoder()
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {
    form: msgspec.msgpack.Decoder(form)
    for form in (Hello, Beat, Question, Reply, RingLine, Collected, list[UsageEvent])
}


def pack(content: Any) -> bytes:
    """A payload."""
    return _encoder.encode(content)


def unpack(payload: bytes, form: Any) -> Any:
    """The opposite of `pack`, for one of the forms above."""
    return _decoders[form].decode(payload)


class Channel(asyncio.Protocol):
    """One end. `on_frame` is called for each frame, `on_lost` once."""

    def __init__(self, on_frame: Callable[[int, bytes], None], on_lost: Callable[[], None]) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._closed = asyncio.Event()
        self.dropped = 0
        """Posted frames that found no room."""

    @classmethod
    async def open(
        cls,
        own: socket.socket,
        *,
        on_frame: Callable[[int, bytes], None],
        on_lost: Callable[[], None],
    ) -> "Channel":
        """Take over one socket of a pair."""
        own.settimeout(0)
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(lambda: cls(on_frame, on_lost), sock=own)
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop has it."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Cut what came into frames."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _HEAD.size:
            size, kind = _HEAD.unpack_from(buffer, start)
            if size > MAX_FRAME_BYTES:
                self.abort()
                return
            end = start + _HEAD.size + size
            if len(buffer) < end:
                break
            self._on_frame(kind, bytes(buffer[start + _HEAD.size : end]))
            start = end
        del buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side is gone."""
        self._transport = None
        self._closed.set()
        self._on_lost()

    @property
    def is_open(self) -> bool:
        """Frames can be sent."""
        return self._transport is not None

    def send(self, kind: Kind, payload: bytes = b"") -> bool:
        """Send a frame that must arrive; False when the other side is gone or does not read."""
        return self._write(kind, payload, most=MAX_UNSENT_BYTES)

    def post(self, kind: Kind, payload: bytes) -> bool:
        """Send a frame that may get lost."""
        is_sent = self._write(kind, payload, most=MAX_POSTED_BYTES)
        self.dropped += not is_sent
        return is_sent

    def _write(self, kind: Kind, payload: bytes, *, most: int) -> bool:
        transport = self._transport
        if transport is None or transport.get_write_buffer_size() > most:
            return False
        transport.write(_HEAD.pack(len(payload), kind) + payload)
        return True

    def close(self) -> None:
        """End it after what was sent."""
        if self._transport:
            self._transport.close()

    async def closed(self) -> None:
        """Wait until all that was sent is with the kernel and the channel has ended."""
        await self._closed.wait()

    def abort(self) -> None:
        """End it at once."""
        if self._transport:
            self._transport.abort()
