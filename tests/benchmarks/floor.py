"""The floor under any proxy: a relay of bytes that reads none of them.

    python tests/benchmarks/floor.py PORT...

The ports are those of the engines; each connection goes to the next one.
"""

import asyncio
import json
import sys
from typing import cast

import uvloop


class FloorUpstream(asyncio.Protocol):
    """Passes an engine's bytes to a client."""

    def __init__(self, client: asyncio.Transport) -> None:
        self.client = client

    def data_received(self, data: bytes) -> None:
        self.client.write(data)


class FloorClient(asyncio.Protocol):
    """Passes a client's bytes to the next engine; looks at none of them."""

    ports: list[int] = []
    number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.waiting: list[bytes] = []
        self.upstream: asyncio.WriteTransport | None = None
        FloorClient.number += 1
        self.task = asyncio.get_running_loop().create_task(self.connect())

    async def connect(self) -> None:
        port = self.ports[FloorClient.number % len(self.ports)]
        self.upstream, _ = await asyncio.get_running_loop().create_connection(
            lambda: FloorUpstream(self.transport), "127.0.0.1", port
        )
        self.upstream.writelines(self.waiting)

    def data_received(self, data: bytes) -> None:
        if self.upstream:
            self.upstream.write(data)
        else:
            self.waiting.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.upstream:
            self.upstream.close()


async def serve_floor(ports: list[int]) -> None:
    """Run until it is ended; the first line on stdout has its port."""
    FloorClient.ports = ports
    server = await asyncio.get_running_loop().create_server(FloorClient, "127.0.0.1", 0)
    sys.stdout.write(json.dumps({"port": server.sockets[0].getsockname()[1]}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve_floor([int(port) for port in sys.argv[1:]]))
