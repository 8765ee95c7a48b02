"""CPU time of one decision, hashing included, at 8, 64 and 512 endpoints.

    python -m tests.benchmarks.bench_decide [--rounds 2000] [--profile]

One request is a 28.8 kB prompt, whose first 24 kB are shared within a group of 150 and whose rest
is one of five questions, as in the published three-vendor runs. A decision is: hash the prompt into
block keys (chunks of 256 bytes), match, price, pick. Parsing the JSON body is shown by itself. The
median of process CPU time per call is printed, with the budget; budgets are never asserted in the
tests.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable

import numpy as np

from routing.core import prompt
from routing.core.document import PoolDocument, parse_document
from routing.core.openai import parse_request
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter

BUDGETS = {8: 120, 64: 120, 512: 200}
SYSTEM_BYTES, QUESTION_BYTES = 24_000, 4_800
SPEED = {
    "prefill_tokens_per_second": 22_700,
    "step_seconds": 6.0e-3,
    "step_seconds_per_sequence": 5.0e-5,
    "step_seconds_per_context_token": 8.2e-8,
    "kv_bytes_per_token": 163_840,
}


def document(count: int, *, disaggregated: bool) -> PoolDocument:
    """A pool of `count` endpoints; disaggregated, a fifth are prefill and two fifths decode."""
    roles = ["prefill", "decode", "both", "decode", "both"] if disaggregated else ["both"]
    contract = {
        "engine": "vllm", "engine_version": "0.32", "connector": "nixl", "connector_version": "1",
        "transport": "nixl", "model_revision": "r", "kv_dtype": "bf16", "block_size_tokens": 16,
        "layout": "HND", "kv_heads": 8, "head_size": 128, "tensor_parallel": 1,
        "pipeline_parallel": 1, "attention_backend": "FLASH", "fabric": "roce",
        "transfer_bytes_per_second": 1.2e10,
    }  # fmt: skip
    endpoints = [
        {
            "id": f"e{position}", "url": f"http://10.0.{position // 250}.{position % 250}:8000",
            "instance": f"i{position}", "engine": "vllm", "role": roles[position % len(roles)],
            "vendor": "nvidia", "speed_class": "c", "node": f"n{position}", "site": "s",
            "jurisdiction": "KR", "kv_capacity_tokens": 380_000, "block_size_tokens": 16,
            "kv_contract": contract,
        }
        for position in range(count)
    ]  # fmt: skip
    return parse_document(
        json.dumps(
            {
                "pool": "bench", "version": 1, "author": "bench",
                "created_at": "2026-01-01T00:00:00Z",
                "role_mode": "disaggregated" if disaggregated else "unified",
                "models": [{"name": "m", "max_model_len": 9216}],
                "endpoints": endpoints, "speed_classes": {"c": SPEED},
            }
        ).encode()
    )  # fmt: skip


def texts(rng: np.random.Generator) -> list[str]:
    """150 groups of five prompts, 28.8 kB each."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz     ", dtype=np.uint8)

    def text(size: int) -> str:
        return rng.choice(letters, size).tobytes().decode()

    systems = [text(SYSTEM_BYTES) for _ in range(150)]
    return [system + text(QUESTION_BYTES) for system in systems for _ in range(5)]


def median_us(call: Callable[[int], object], rounds: int) -> float:
    """Median process CPU time of a call in microseconds."""
    taken = np.empty(rounds)
    for turn in range(rounds):
        before = time.process_time_ns()
        call(turn)
        taken[turn] = time.process_time_ns() - before
    return float(np.median(taken)) / 1000


def warmed(pool: PoolDocument, requests: list[InferenceRequest]) -> PoolRouter:
    """A router that has served some traffic and has 4 requests an endpoint in flight."""
    router = PoolRouter(pool, seed=7, now=0.0)
    now = 0.0
    signals = EngineSignals(running=4, waiting=0, kv_usage=0.3, kv_capacity_tokens=380_000)
    for turn, request in enumerate(requests * 2):
        now += 0.001
        decision = router.decide(request, now=now)
        lease = router.begin(request, decision, now=now)
        if decision.prefill:
            router.prefill_done(lease, now=now, prompt_tokens=7200, cached_tokens=0)
        router.first_token(lease, now=now)
        if turn < len(requests) * 2 - min(4 * len(pool.endpoints), 1200):
            router.end(
                lease, now=now + 0.001, outcome="ok", prompt_tokens=7200, completion_tokens=1
            )
    for endpoint in pool.endpoints:
        router.observe(endpoint.id, signals, now=now)
    return router


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=2000)
    options.add_argument("--profile", action="store_true")
    arguments = options.parse_args()
    rng = np.random.default_rng(7)
    prompts = texts(rng)
    bodies = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
        for text in prompts
    ]
    raw = [text.encode() for text in prompts]
    root = prompt.root_key("m")
    pick = rng.integers(0, len(prompts), arguments.rounds)
    write = sys.stdout.write
    identity = document(8, disaggregated=False).prompt_identity

    def parse(turn: int) -> object:
        return parse_request("/v1/chat/completions", bodies[pick[turn]], identity=identity)

    def hash_only(turn: int) -> object:
        return prompt.block_keys(raw[pick[turn]], root=root, chunk_bytes=256)

    hashing = median_us(hash_only, arguments.rounds)
    write(f"hash 28.8 kB in chunks of 256     p50 {hashing:7.1f} us\n")
    write(f"parse_request (JSON and hash)     p50 {median_us(parse, arguments.rounds):7.1f} us\n")
    requests = [
        InferenceRequest(
            id=str(position), path="/v1/chat/completions", model="m", tenant="t", project="p",
            key_id="k", arrived_at=0.0,
            parsed=parse_request("/v1/chat/completions", body, identity=identity),
        )
        for position, body in enumerate(bodies)
    ]  # fmt: skip
    for disaggregated in (False, True):
        for count, budget in BUDGETS.items():
            router = warmed(document(count, disaggregated=disaggregated), requests)

            def decide(turn: int, router: PoolRouter = router) -> object:
                hash_only(turn)
                return router.decide(requests[pick[turn]], now=10.0)

            median_us(decide, 200)
            shape = "P/D pool" if disaggregated else "unified "
            taken = median_us(decide, arguments.rounds)
            write(f"decide, {shape} {count:4d} endpoints  p50 {taken:7.1f} us  budget {budget}\n")
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: [decide(turn) for turn in range(arguments.rounds)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
