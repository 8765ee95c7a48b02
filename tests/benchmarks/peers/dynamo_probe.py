"""Dynamo's selection service in this process; run by the interpreter of its own environment.

python dynamo_probe.py WORKERS    prints one JSON line a figure

Workers publish vLLM-shaped KV events over ZMQ, made here: a system prompt of 100 blocks is
everywhere, the conversation (437 blocks of 16 tokens) on two. Figures: CPU time of one `select()`
of the 7,000-token prompt (median of 40 rounds of 20), and CPU time per block of ingested events.
"""

import asyncio
import json
import os
import random  # noqa: TID251 - this interpreter has no numpy
import statistics
import sys
import time
from typing import Any

FIRST_PORT = 25_000
TOKENS, BLOCK = 7_000, 16
BLOCKS = TOKENS // BLOCK
SHARED_BLOCKS = 100
MOST_ENGINES_OF_INGEST = 8

os.environ.setdefault("DYN_LOG", "error")


class Publisher:
    """The events of one worker."""

    def __init__(self, context: Any, number: int) -> None:
        import msgpack
        import zmq

        self._pack = msgpack.packb
        self._socket = context.socket(zmq.PUB)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.bind(f"tcp://127.0.0.1:{FIRST_PORT + number}")
        self._sequence = 0

    def stored(self, hashes: list[int], parent: int | None, tokens: list[int]) -> bytes:
        event = ["BlockStored", hashes, parent, tokens, BLOCK, None]
        packed: bytes = self._pack([time.monotonic(), [event], 0])
        return packed

    def send(self, payload: bytes) -> None:
        self._socket.send_multipart([b"", self._sequence.to_bytes(8, "big"), payload])
        self._sequence += 1

    def close(self) -> None:
        self._socket.close(0)


async def run(workers: int) -> None:
    import zmq
    from dynamo.llm import SelectionService

    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4096)
    service = SelectionService(indexer_threads=2)
    publishers = [Publisher(context, number) for number in range(workers)]
    for number in range(workers):
        await service.upsert_worker(
            {
                "worker_id": number, "model_name": "m", "block_size": BLOCK,
                "endpoint": f"http://127.0.0.1:{9100 + number}",
                "data_parallel_start_rank": 0, "data_parallel_size": 1,
                "kv_events_endpoints": {0: f"tcp://127.0.0.1:{FIRST_PORT + number}"},
            }
        )  # fmt: skip
    await asyncio.sleep(2 + workers / 200)
    rng = random.Random(1)  # noqa: S311 - a workload
    tokens = [rng.randrange(1000, 100_000) for _ in range(TOKENS)]
    for number, publisher in enumerate(publishers):
        shared = list(range(1, SHARED_BLOCKS + 1))
        publisher.send(publisher.stored(shared, None, tokens[: SHARED_BLOCKS * BLOCK]))
        if number in (1, 2):
            rest = list(range(SHARED_BLOCKS + 1, BLOCKS + 1))
            own = tokens[SHARED_BLOCKS * BLOCK : BLOCKS * BLOCK]
            publisher.send(publisher.stored(rest, SHARED_BLOCKS, own))
    await _until_known(service, tokens)
    _say(what="select", workers=workers, cpu_us=await _selection(service, tokens))
    _say(what="ingest", workers=workers, **await _ingest(service, publishers, rng))
    service.shutdown()
    for publisher in publishers:
        publisher.close()
    context.term()


async def _until_known(service: Any, tokens: list[int]) -> None:
    for _ in range(5000):
        answer = await service.select({"model_name": "m", "token_ids": tokens})
        if answer["overlap"]["gpu"] > TOKENS - 100:
            return
        await asyncio.sleep(0.002)
    raise SystemExit("The events did not arrive.")


async def _selection(service: Any, tokens: list[int]) -> float:
    rounds = []
    for _ in range(40):
        began = time.process_time()
        for _ in range(20):
            await service.select({"model_name": "m", "token_ids": tokens})
        rounds.append((time.process_time() - began) / 20 * 1e6)
    return round(statistics.median(rounds), 1)


async def _ingest(service: Any, publishers: list[Publisher], rng: random.Random) -> dict[str, Any]:
    """One event per prompt of 437 blocks, over the first eight workers."""
    prompts = [[rng.randrange(1000, 100_000) for _ in range(TOKENS)] for _ in range(200)]
    first, messages = 1_000, []
    for number, prompt in enumerate(prompts):
        publisher = publishers[number % min(MOST_ENGINES_OF_INGEST, len(publishers))]
        hashes = list(range(first, first + BLOCKS))
        first += BLOCKS
        messages.append((publisher, publisher.stored(hashes, None, prompt[: BLOCKS * BLOCK])))
    began, spent = time.perf_counter(), time.process_time()
    for publisher, payload in messages:
        publisher.send(payload)
    # The last event of each publisher: a stream of its own may be behind the others.
    for prompt in prompts[-MOST_ENGINES_OF_INGEST:]:
        await _until_known(service, prompt)
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    blocks = len(prompts) * BLOCKS
    return {
        "blocks": blocks,
        "blocks_per_second": round(blocks / wall),
        "blocks_per_cpu_second": round(blocks / cpu),
    }


def _say(**row: Any) -> None:
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1])))
