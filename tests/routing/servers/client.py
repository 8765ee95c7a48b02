"""A plain HTTP client for tests: sends bytes, reads one answer, keeps the connection."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest

DEADLINE = 10.0

Start = Callable[..., Awaitable[int]]
"""Starts an HTTP server with a handler and limits; returns its port."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back; `chunks` are the transfer chunks as they arrived."""

    status: int
    headers: dict[str, str]
    body: bytes
    chunks: list[bytes]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        return [part for part in self.body.decode().split("\n\n") if part]


class RawClient:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request with a JSON body (or bytes) and read its answer."""
        await self.send(message(method, path, body, headers=headers))
        return await self.answer()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read a status line and headers."""
        async with asyncio.timeout(DEADLINE):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *lines = text.rstrip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        return int(status_line.split(" ")[1]), headers

    async def chunk(self) -> bytes:
        """Read one transfer chunk; the empty one ends the answer."""
        async with asyncio.timeout(DEADLINE):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def answer(self) -> Answer:
        """Read a whole answer."""
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            chunks = []
            while chunk := await self.chunk():
                chunks.append(chunk)
            return Answer(status=status, headers=headers, body=b"".join(chunks), chunks=chunks)
        async with asyncio.timeout(DEADLINE):
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(status=status, headers=headers, body=body, chunks=[])


def message(
    method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
) -> bytes:
    """A request as bytes."""
    content = (
        body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    )
    lines = [f"{method} {path} HTTP/1.1", "host: test", f"content-length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def request(
    port: int, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
) -> Answer:
    """One request on a connection of its own."""
    async with RawClient(port) as client:
        return await client.request(method, path, body, headers=headers)


async def echo(received: HttpRequest, client: Connection) -> None:
    """Handler that says what it got."""
    client.respond(200, received.method.encode() + b" " + received.path.encode() + received.body)
