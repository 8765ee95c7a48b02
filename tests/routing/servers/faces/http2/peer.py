"""The other end of a connection of HTTP/2, byte by byte."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any

import hpack

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.frames import Setting
from routing.servers.faces.http2.server import RpcServer
from routing.servers.faces.http2.streams import RpcStream

ECHO = "/test.Echo/Say"
DEADLINE = 10.0


@dataclass
class Echo:
    """Sends each message back, and ends when no more come; fails where it is told to."""

    wire: RpcStream
    seen: list[bytes] = field(default_factory=list)
    is_closed: bool = False

    def taken(self, raw: bytes) -> None:
        self.seen.append(raw)
        if raw == b"fail":
            raise LookupError
        self.wire.send(raw)

    def closed(self) -> None:
        self.is_closed = True
        self.wire.end()


class Echoes:
    """A server with one method, and every call of it."""

    def __init__(self, **options: Any) -> None:
        self.calls: list[Echo] = []
        self.server = RpcServer({ECHO: self._make}, **options)

    def _make(self, wire: RpcStream) -> Echo:
        call = Echo(wire)
        self.calls.append(call)
        return call

    async def start(self) -> int:
        self.port = await self.server.start("127.0.0.1", 0)
        return self.port


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


def grpc_message(body: bytes, *, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(body).to_bytes(4, "big") + body


class Peer:
    """Says what a test wants, in any order."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self._port, self._tls = port, tls
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()

    async def __aenter__(self) -> "Peer":
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._tls
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def greet(self, **values: int) -> None:
        """Preface and settings."""
        told = {Setting[name.upper()]: value for name, value in values.items()}
        await self.say(frames.PREFACE + frames.settings(told))

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def call(self, number: int, path: str = ECHO, *, flags: int = frames.END_HEADERS) -> bytes:
        """Open a stream."""
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "a"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
        return frames.frame(frames.HEADERS, flags, number, self.encoder.encode(headers))

    async def opens_a_call(self, number: int = 1) -> None:
        """Greet and have one message echoed; the call stays open."""
        await self.greet()
        message = frames.frame(frames.DATA, 0, number, grpc_message(b"x"))
        await self.say(self.call(number) + message)
        await self.until(frames.DATA, number)

    async def is_gone(self) -> bool:
        """Read until the connection is closed from there."""
        while await self.frame() is not None:
            pass
        return True

    async def frame(self) -> Frame | None:
        """The next frame; `None` at the end of the connection."""
        async with asyncio.timeout(DEADLINE):
            try:
                head = await self.reader.readexactly(frames.HEAD_BYTES)
                payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
        return Frame(head[3], head[4], int.from_bytes(head[5:9], "big"), payload)

    async def until(self, kind: int, stream: int | None = None) -> Frame:
        """The next frame of a kind; others are passed over."""
        while (found := await self.frame()) is not None:
            if found.kind == kind and stream in (None, found.stream):
                return found
        raise EOFError(kind)

    async def answer(self, number: int) -> tuple[bytes, dict[str, str]]:
        """What a stream brought until its end, and its trailers."""
        data, headers = b"", {}
        while (found := await self.frame()) is not None:
            if found.stream != number:
                continue
            if found.kind == frames.DATA:
                data += found.payload
            elif found.kind == frames.HEADERS:
                headers |= dict(self.decoder.decode(found.payload))
            if found.flags & frames.END_STREAM:
                break
        return data, headers

    async def broken(self) -> int:
        """The code with which the connection is given up; it must be closed then."""
        code = int.from_bytes((await self.until(frames.GOAWAY)).payload[4:8], "big")
        assert await self.frame() is None
        return code
