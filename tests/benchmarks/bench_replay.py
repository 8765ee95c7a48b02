"""How long a replay takes and holds the event loop up, beside one payload of the largest size.

    python -m tests.benchmarks.bench_replay [--blocks 1000000]

A publisher in a process of its own replays an engine's whole past: events of 28 blocks of 16
tokens, a prompt of 437 blocks a batch. The router's own stream follows it. Stalls are the times
between two turns of the event loop: by the clock, and by the CPU time of the loop's thread, which
other processes of the machine do not lengthen. Nothing is asserted.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import zmq

from routing.core.event_decoding import MAX_PAYLOAD_BYTES
from routing.servers.event_sources import EventSource
from routing.servers.event_stream import EventStream
from tests.benchmarks.bench_index import (
    BLOCK,
    PROMPT_BLOCKS,
    make_feed,
    stored_events,
)

TOO_LONG_SECONDS = 300.0


def publish(blocks: int) -> None:
    """Answer one question for everything; prints the ports first."""
    rng = np.random.default_rng(3)
    batches = [
        msgspec.msgpack.encode([float(number), stored_events(rng, 1, 28), 0])
        for number in range(blocks // PROMPT_BLOCKS)
    ]
    context = zmq.Context()
    live, replay = context.socket(zmq.PUB), context.socket(zmq.ROUTER)
    replay.set_hwm(0)
    ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in (live, replay)]
    print(json.dumps(ports), flush=True)
    client, *_ = replay.recv_multipart()
    for number, payload in enumerate(batches):
        replay.send_multipart([client, b"", number.to_bytes(8, "big"), payload])
    replay.send_multipart([client, b"", b"\xff" * 8, b""])
    sys.stdin.read()


class Turns:
    """Times between two turns of the running loop."""

    def __init__(self) -> None:
        self.longest = self.longest_cpu = 0.0
        self._loop = asyncio.get_running_loop()
        self._wall, self._cpu = time.monotonic(), time.thread_time()
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        wall, cpu = time.monotonic(), time.thread_time()
        self.longest = max(self.longest, wall - self._wall)
        self.longest_cpu = max(self.longest_cpu, cpu - self._cpu)
        self._wall, self._cpu = wall, cpu
        self._loop.call_soon(self._turn)

    def figures(self) -> dict[str, float]:
        """Milliseconds."""
        return {
            "longest_stall_ms": round(self.longest * 1e3, 2),
            "longest_stall_cpu_ms": round(self.longest_cpu * 1e3, 2),
        }


async def replay(blocks: int) -> dict[str, Any]:
    """Follow a publisher until its past is known."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_replay", "--publish", str(blocks)]
    publisher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert publisher.stdout
    live, past = json.loads(publisher.stdout.readline())
    feed, instances, decoder = make_feed(1)
    source = EventSource(
        address=f"tcp://127.0.0.1:{live}", replay_address=f"tcp://127.0.0.1:{past}", topic=""
    )
    context = zmq.Context()
    stream = EventStream(feed, instances[0], decoder, source, context)
    turns, began, cpu = Turns(), time.monotonic(), time.thread_time()
    stream.start()
    await _until(lambda: feed.is_exact(instances[0]))
    held = feed.exact.publisher(instances[0].slot)
    figures = {
        "blocks": held.blocks if held else 0,
        "seconds": round(time.monotonic() - began, 2),
        "cpu_seconds": round(time.thread_time() - cpu, 2),
        **turns.figures(),
    }
    stream.stop()
    context.destroy(linger=0)
    publisher.terminate()
    publisher.wait()
    return figures


async def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + TOO_LONG_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("The replay did not end.")
        await asyncio.sleep(0.01)


async def largest_payload(*, in_one_event: bool) -> dict[str, Any]:
    """One batch of nearly the largest size that is read, offered as if it came live."""
    rng = np.random.default_rng(5)
    blocks = MAX_PAYLOAD_BYTES // (BLOCK * 5 + 9)
    count = blocks if in_one_event else 28
    events: list[list[Any]] = []
    for _ in range(blocks // count):
        names = rng.integers(1 << 50, 1 << 63, count).tolist()
        tokens = rng.integers(0, 128_000, count * BLOCK).tolist()
        events.append(["BlockStored", names, None, tokens, BLOCK, None])
    payload, blocks = msgspec.msgpack.encode([0.0, events, 0]), len(events) * count
    feed, instances, decoder = make_feed(1)
    source = EventSource(address="tcp://127.0.0.1:1", replay_address=None, topic="")
    context = zmq.Context()
    stream = EventStream(feed, instances[0], decoder, source, context)
    stream.start()
    await asyncio.sleep(0.1)
    turns = Turns()
    stream.take([b"", bytes(8), payload])
    held = feed.exact.publisher(instances[0].slot)
    await _until(lambda: held is not None and held.counts.stored_blocks >= blocks)
    stream.stop()
    context.destroy(linger=0)
    return {"bytes": len(payload), "blocks": blocks, **turns.figures()}


def run(blocks: int = 1_000_000) -> dict[str, Any]:
    """All figures."""
    return {
        "replay": asyncio.run(replay(blocks)),
        "largest_payload_of_many_events": asyncio.run(largest_payload(in_one_event=False)),
        "largest_payload_of_one_event": asyncio.run(largest_payload(in_one_event=True)),
    }


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--blocks", type=int, default=1_000_000)
    options.add_argument("--publish", type=int)
    arguments = options.parse_args()
    if arguments.publish:
        publish(arguments.publish)
    else:
        print(json.dumps(run(arguments.blocks), indent=1))


if __name__ == "__main__":
    main()
