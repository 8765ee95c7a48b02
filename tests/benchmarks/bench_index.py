"""CPU time and memory of the exact prefix index.

    python -m tests.benchmarks.bench_index [--profile]

Ingest: stored events with token ids as Python lists, as a msgpack decoder gives them, in events of
28 blocks and of 1 block of 16 tokens, from eight publishers; once for the index alone and once with
decoding of the payload. Match: a prompt of 7,000 tokens (437 blocks) against 8, 64 and 512
instances, keys given. Memory: growth of the process per distinct block, held by 1, 8 and 64
instances, in processes of their own. Nothing is asserted; budgets are printed beside the figures.
"""

import argparse
import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from routing.core.block_masks import BlockMasks, short_keys
from routing.core.document import PromptIdentity
from routing.core.event_decoding import EventDecoder
from routing.core.kv_events import Stored
from routing.core.prompt import exact_root, token_block_keys
from routing.core.table import Instance
from routing.pool.event_feed import EventFeed
from routing.producers.exact_index import ExactIndex
from routing.producers.prefix_index import PrefixIndex
from tests.routing.pool.builders import endpoint_dict, make_document

BLOCK = 16
PROMPT_BLOCKS = 437
BUDGETS = {
    "ingest_28_blocks_per_second": 1_500_000,
    "ingest_1_blocks_per_second": 800_000,
    "bytes_per_block": 110,
}


def make_index(slots: int, *, max_blocks: int = 4_000_000) -> tuple[BlockMasks, ExactIndex]:
    """An index with publishers 0 to `slots` - 1."""
    blocks = BlockMasks()
    blocks.reserve(slots)
    index = ExactIndex(blocks, block_tokens=BLOCK, max_blocks=max_blocks)
    for slot in range(slots):
        index.open(slot)
    return blocks, index


def stored_events(rng: np.random.Generator, prompts: int, per_event: int) -> list[dict[str, Any]]:
    """Prompts of 437 blocks in events of so many, as maps."""
    events = []
    for _ in range(prompts):
        tokens = rng.integers(0, 128_000, PROMPT_BLOCKS * BLOCK)
        hashes = rng.integers(1 << 50, 1 << 63, PROMPT_BLOCKS).tolist()
        for first in range(0, PROMPT_BLOCKS, per_event):
            last = min(PROMPT_BLOCKS, first + per_event)
            events.append(
                {
                    "type": "BlockStored",
                    "block_hashes": hashes[first:last],
                    "parent_block_hash": hashes[first - 1] if first else None,
                    "token_ids": tokens[first * BLOCK : last * BLOCK].tolist(),
                    "block_size": BLOCK,
                    "lora_id": None,
                    "medium": "GPU",
                    "lora_name": None,
                    "extra_keys": [None] * (last - first),
                    "group_idx": 0,
                    "kv_cache_spec_kind": "full_attention",
                }
            )
    return events


def least_seconds(call: Callable[[], object], rounds: int) -> float:
    """Least CPU time of this thread over the rounds: others share the machine."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        before = time.thread_time()
        call()
        taken.append(time.thread_time() - before)
        gc.enable()
    return min(taken)


def ingest(per_event: int, *, prompts: int = 150, rounds: int = 5) -> dict[str, float]:
    """Blocks per second of CPU time, of the index alone and with decoding."""
    events = stored_events(np.random.default_rng(3), prompts, per_event)
    batch = -(-PROMPT_BLOCKS // per_event)
    payloads = [
        msgspec.msgpack.encode([0.0, events[at : at + batch], 0])
        for at in range(0, len(events), batch)
    ]
    decoder = EventDecoder()
    decoded = [decoder.decode(payload).events for payload in payloads]

    def index_only() -> None:
        _, index = make_index(8)
        for number, batch in enumerate(decoded):
            index.apply(number % 8, batch)

    def with_decoding() -> None:
        _, index = make_index(8)
        for number, payload in enumerate(payloads):
            index.apply(number % 8, decoder.decode(payload).events)

    count = prompts * PROMPT_BLOCKS
    return {
        "index": round(count / least_seconds(index_only, rounds)),
        "with_decoding": round(count / least_seconds(with_decoding, rounds)),
    }


def ingest_blocks_per_cpu_second(*, rounds: int = 5) -> float:
    """The peer's figure (`peers/dynamo_probe.py`): 200 prompts of 437 blocks, an event each.

    Payloads are packed beforehand, with batches and events as arrays, over eight publishers. The
    time is what a router spends on their sequence numbers, on decoding and on the index.
    """
    rng = np.random.default_rng(1)
    payloads = [
        msgspec.msgpack.encode([0.0, [_as_array(stored_events(rng, 1, PROMPT_BLOCKS)[0])], 0])
        for _ in range(200)
    ]

    feeds = [make_feed(8) for _ in range(rounds)]

    def deliver() -> None:
        feed, instances, decoder = feeds.pop()
        for number, payload in enumerate(payloads):
            instance = instances[number % 8]
            actions = feed.arrived(instance, number // 8, now=float(number))
            assert actions == ("apply",)
            feed.take(instance, decoder.decode(payload), now=float(number))

    return round(len(payloads) * PROMPT_BLOCKS / least_seconds(deliver, rounds))


def _as_array(event: dict[str, Any]) -> list[Any]:
    names = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id")
    return ["BlockStored", *(event[name] for name in names)]


def make_feed(slots: int) -> tuple[EventFeed, list[Instance], EventDecoder]:
    """A pool's event streams, all followed."""
    blocks = BlockMasks()
    beliefs = PrefixIndex(blocks)
    feed = EventFeed(blocks, beliefs, PromptIdentity())
    document = make_document(*(endpoint_dict(f"e{slot}") for slot in range(slots)))
    instances = [
        Instance(spec, row, beliefs.add(capacity_blocks=100))
        for row, spec in enumerate(document.endpoints)
    ]
    for instance in instances:
        feed.follow(instance, can_replay=False)
    return feed, instances, EventDecoder()


def match_us(slots: int, *, rounds: int = 9) -> float:
    """Microseconds of one match: a shared beginning everywhere, the whole prompt at two."""
    rng = np.random.default_rng(5)
    blocks, index = make_index(slots)
    tokens = rng.integers(0, 128_000, PROMPT_BLOCKS * BLOCK).astype(np.uint32)
    names = rng.integers(1 << 50, 1 << 63, PROMPT_BLOCKS).tolist()
    for slot in range(slots):
        count = PROMPT_BLOCKS if slot in (1, 2) else 100
        stored = Stored(names[:count], None, tokens[: count * BLOCK].tolist(), BLOCK)
        index.apply(slot, [stored])
    for other in stored_events(rng, 100, PROMPT_BLOCKS):
        index.apply(1, [Stored(**{name: other[name] for name in Stored.__struct_fields__[:4]})])
    root = exact_root(None, None)
    keys = short_keys(token_block_keys(tokens, root=root, block_tokens=BLOCK))
    assert blocks.match(keys).depths.max() == PROMPT_BLOCKS
    times = 200
    seconds = least_seconds(lambda: [blocks.match(keys) for _ in range(times)], rounds)
    return round(seconds / times * 1e6, 1)


def bytes_per_block(slots: int) -> float:
    """Growth of this process per distinct block, all of them held by `slots` instances."""
    rng = np.random.default_rng(7)
    _, index = make_index(slots)
    # Memory that any first use takes.
    index.apply(0, [Stored([2**60], None, list(range(BLOCK)), BLOCK)])
    events = 0
    gc.collect()
    before = _resident()
    for _ in range(250):
        event = stored_events(rng, 1, PROMPT_BLOCKS)[0]
        stored = Stored(**{name: event[name] for name in Stored.__struct_fields__[:4]})
        for slot in range(slots):
            index.apply(slot, [stored])
        events += PROMPT_BLOCKS
    gc.collect()
    return round((_resident() - before) / events, 1)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _in_own_process(slots: int) -> float:
    command = [sys.executable, "-m", "tests.benchmarks.bench_index", "--memory", str(slots)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run() -> dict[str, Any]:
    """All figures."""
    return {
        "ingest_28_blocks_per_second": ingest(28),
        "ingest_1_blocks_per_second": ingest(1),
        "ingest_blocks_per_cpu_second": ingest_blocks_per_cpu_second(),
        "match_7000_tokens_us": {slots: match_us(slots) for slots in (8, 64, 512)},
        "bytes_per_block": {slots: _in_own_process(slots) for slots in (1, 8, 64)},
        "budgets": BUDGETS,
    }


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--profile", action="store_true")
    options.add_argument("--memory", type=int)
    arguments = options.parse_args()
    if arguments.memory:
        print(bytes_per_block(arguments.memory))
    elif arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(ingest, 1, rounds=1)
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)
    else:
        print(json.dumps(run(), indent=1))


if __name__ == "__main__":
    main()
