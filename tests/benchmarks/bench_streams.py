"""A thousand streams of fifty events per second through one process: all events, and their delay.

    python -m tests.benchmarks.bench_streams [--streams 1000] [--rate 50] [--seconds 10]

A scripted engine writes the time into each event; the reader subtracts it from the time at which it
has the event. Engine, router and reader are three processes of one machine with one clock. For
comparison the same load is read from the engine directly: what is measured there is the two ends'
own delay, and on a machine with fewer than three idle cores most of it. Writes
`var/bench/streams.json`.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import uvloop

from tests.benchmarks import bench_proxy, processes

OUT = Path("var/bench/streams.json")
GROUPS = 20
"""Streams are written in so many turns per period: an engine does not step for all at once."""
MARK = b'"content":"'
PLACE = b"0" * 19
EVENT = bench_proxy.chunked(bench_proxy.event().replace(b" word", PLACE))


class Writer(asyncio.Protocol):
    """One connection to the engine; each request makes a stream."""

    streams: list[set["Writer"]] = [set() for _ in range(GROUPS)]
    opened = 0
    events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.left = 0
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, _, body = self.buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if not _ or len(body) < length:
            return
        self.buffer = b""
        if not length:
            page = bench_proxy.METRICS
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(page), page)
            )
            return
        self.transport.write(bench_proxy.STREAM_HEAD)
        self.left = Writer.events
        Writer.streams[Writer.opened % GROUPS].add(self)
        Writer.opened += 1

    def step(self) -> None:
        """Write the next event."""
        stamp = b"%019d" % time.monotonic_ns()
        self.transport.write(EVENT.replace(PLACE, stamp))
        self.left -= 1
        if self.left <= 0:
            self.transport.write(bench_proxy.LAST)

    def connection_lost(self, exc: Exception | None) -> None:
        self.left = 0


async def serve_engine(rate: float, events: int) -> None:
    """Role of the engine: a few turns per period, each for its share of the streams."""
    Writer.events = events
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Writer, "127.0.0.1", 0, backlog=1024)
    bench_proxy.say([server.sockets[0].getsockname()[1]])
    due = loop.time()
    for turn in range(10**9):
        due += 1 / rate / GROUPS
        await asyncio.sleep(max(0.0, due - loop.time()))
        group = Writer.streams[turn % GROUPS]
        for stream in list(group):
            stream.step()
            if stream.left <= 0:
                group.discard(stream)


class Reader(asyncio.Protocol):
    """One client with one stream."""

    def __init__(self, request: bytes, delays: list[int], done: "asyncio.Future[None]") -> None:
        self.request, self.delays, self.done = request, delays, done
        self.tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        first, *parts = (self.tail + data).split(MARK)
        self.tail = first[-40:] if not parts else b""
        for part in parts:
            stamp = part[:19]
            if len(stamp) < 19:
                self.tail = MARK + part
                continue
            self.delays.append(now - int(stamp))
        if b"[DONE]" in data and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError("A stream broke."))


async def read(port: int, streams: int) -> list[int]:
    """Open all streams and read them to their end; delays in nanoseconds."""
    loop, delays = asyncio.get_running_loop(), list[int]()
    done = [loop.create_future() for _ in range(streams)]
    requests = bench_proxy.requests("s1k", streams)
    for request, future in zip(requests, done, strict=True):
        await loop.create_connection(
            lambda request=request, future=future: Reader(request, delays, future),
            "127.0.0.1",
            port,
        )
    async with asyncio.timeout(300):
        await asyncio.gather(*done)
    return delays


def measure(name: str, port: int, pid: int, options: argparse.Namespace) -> dict[str, Any]:
    """Read once and account the process's CPU time."""
    before, began = processes.own_cpu_seconds(pid), time.perf_counter()
    delays = np.array(uvloop.run(read(port, options.streams))) / 1e6
    spent, elapsed = processes.own_cpu_seconds(pid) - before, time.perf_counter() - began
    expected = options.streams * int(options.rate * options.seconds)
    return {
        "name": name,
        "events": len(delays),
        "missing": expected - len(delays),
        "delay_ms_p50": round(float(np.percentile(delays, 50)), 2),
        "delay_ms_p99": round(float(np.percentile(delays, 99)), 2),
        "delay_ms_max": round(float(delays.max()), 2),
        "events_per_second": round(len(delays) / elapsed),
        "cpu_us_per_event": round(1e6 * spent / len(delays), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=["bench", "engine"], default="bench")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    if options.role == "engine":
        uvloop.run(serve_engine(options.rate, int(options.rate * options.seconds)))
        return
    engine, ports = bench_proxy.start(
        *("-m", "tests.benchmarks.bench_streams", "--role", "engine"),
        *("--rate", str(options.rate), "--seconds", str(options.seconds)),
    )
    with tempfile.TemporaryDirectory() as folder:
        router, port = bench_proxy.start_router(folder, ports, "consort")
        try:
            rows = [
                measure("direct", ports[0], engine.pid, options),
                measure("router", port, router.pid, options),
            ]
        finally:
            for process in (router, engine):
                bench_proxy.stop(process)
    for row in rows:
        bench_proxy.say(row)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    found = {"rows": rows, "cores": os.cpu_count(), "streams": options.streams}
    OUT.write_text(json.dumps(found, indent=2) + "\n")
    print(f"written to {OUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
