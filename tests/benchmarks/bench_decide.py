"""CPU time of one decision, hashing included, at 8, 64 and 512 endpoints.

    python -m tests.benchmarks.bench_decide [--rounds 2000] [--profile]

Two kinds of requests. Text: a 28.8 kB prompt, whose first 24 kB are shared within a group of 150
and whose rest is one of five questions, as in the published three-vendor runs; chunks of 256 bytes.
Tokens: 7,000 token ids that are known as an array; a system prompt of 100 blocks of 16 is in every
cache and the whole of 437 in two, as events tell, which is what the peer's figure is for.

A decision is: hash the prompt into block keys, match, price, pick. Parsing the JSON body is shown
by itself. The median of process CPU time per call is printed, with the budget; budgets are never
asserted in the tests.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from routing.core import prompt
from routing.core.document import PoolDocument, parse_document
from routing.core.kv_events import Batch, Stored
from routing.core.openai import parse_request
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter

BUDGETS = {8: 120, 64: 120, 512: 200}
SYSTEM_BYTES, QUESTION_BYTES = 24_000, 4_800
TOKENS, BLOCK_TOKENS, SHARED_BLOCKS = 7_000, 16, 100
ROUNDS, WARM_UP_ROUNDS = 2000, 200
SPEED = {
    "prefill_tokens_per_second": 22_700,
    "step_seconds": 6.0e-3,
    "step_seconds_per_sequence": 5.0e-5,
    "step_seconds_per_context_token": 8.2e-8,
    "kv_bytes_per_token": 163_840,
}
SIGNALS = EngineSignals(running=4, waiting=0, kv_usage=0.3, kv_capacity_tokens=380_000)


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
        router.observe(endpoint.id, SIGNALS, now=now)
    return router


def token_decision_us(count: int, rounds: int = ROUNDS) -> float:
    """Median CPU microseconds of a decision on a prompt of token ids; `count` endpoints."""
    pool = document(count, disaggregated=False)
    router, rng = PoolRouter(pool, seed=7, now=0.0), np.random.default_rng(1)
    tokens = rng.integers(1000, 100_000, TOKENS).astype(np.uint32)
    caches, blocks = router.caches, TOKENS // BLOCK_TOKENS
    for row, endpoint in enumerate(pool.endpoints):
        instance = caches.instance(endpoint.id)
        if instance is None:
            raise LookupError(f"The pool has no endpoint {endpoint.id}.")
        held = blocks if row in (1, 2) else SHARED_BLOCKS
        caches.events.follow(instance, can_replay=False)
        if "apply" in caches.events.arrived(instance, 0, now=0.0):
            batch = Batch([_stored(tokens, held)], sent_at=0.0)
            caches.events.take(instance, batch, now=0.0)
        router.observe(endpoint.id, SIGNALS, now=0.0)
    root, body = prompt.exact_root(None, None), {"model": "m", "prompt": tokens.tolist()}
    request = _request(0, "/v1/completions", json.dumps(body).encode(), pool)

    def decide(turn: int) -> object:
        del turn
        prompt.token_block_keys(tokens, root=root, block_tokens=BLOCK_TOKENS)
        return router.decide(request, now=0.5)

    found = router.decide(request, now=0.5).predicted.hit_tokens
    if found < TOKENS - 2 * BLOCK_TOKENS:
        raise LookupError(f"Only {found} tokens of the prompt were found in the caches.")
    median_us(decide, WARM_UP_ROUNDS)
    return median_us(decide, rounds)


def _stored(tokens: NDArray[np.uint32], count: int) -> Stored:
    """Blocks as an engine with 64-bit hashes tells of them."""
    names: list[int | bytes] = [2**62 + place for place in range(count)]
    return Stored(names, None, tokens[: count * BLOCK_TOKENS].tolist(), BLOCK_TOKENS)


def text_decisions_us(rounds: int = ROUNDS) -> tuple[dict[str, float], Callable[[int], object]]:
    """Median CPU microseconds per pool, and the last decision by itself, for a profile."""
    rng = np.random.default_rng(7)
    found: dict[str, float] = {}
    prompts = texts(rng)
    raw, root = [text.encode() for text in prompts], prompt.root_key("m")
    pick = rng.integers(0, len(prompts), rounds)
    for disaggregated in (False, True):
        for count in BUDGETS:
            pool = document(count, disaggregated=disaggregated)
            requests = [
                _request(position, "/v1/chat/completions", _body(text), pool)
                for position, text in enumerate(prompts)
            ]
            router = warmed(pool, requests)

            def decide(
                turn: int,
                router: PoolRouter = router,
                requests: list[InferenceRequest] = requests,
            ) -> object:
                prompt.block_keys(raw[pick[turn]], root=root, chunk_bytes=256)
                return router.decide(requests[pick[turn]], now=10.0)

            median_us(decide, min(rounds, WARM_UP_ROUNDS))
            shape = "P/D" if disaggregated else "unified"
            found[f"{shape} {count}"] = median_us(decide, rounds)
    return found, decide


def _body(text: str) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


def _request(position: int, path: str, body: bytes, pool: PoolDocument) -> InferenceRequest:
    parsed = parse_request(path, body, identity=pool.prompt_identity)
    return InferenceRequest(
        id=str(position), path=path, model="m", tenant="t", project="p", key_id="k",
        arrived_at=0.0, parsed=parsed,
    )  # fmt: skip


def parsing_us(rounds: int = ROUNDS) -> dict[str, float]:
    """Hashing alone, and reading a body with it."""
    text = texts(np.random.default_rng(7))[0]
    raw, body, root = text.encode(), _body(text), prompt.root_key("m")
    identity = document(8, disaggregated=False).prompt_identity
    return {
        "hash 28.8 kB in chunks of 256": median_us(
            lambda _: prompt.block_keys(raw, root=root, chunk_bytes=256), rounds
        ),
        "parse_request (JSON and hash)": median_us(
            lambda _: parse_request("/v1/chat/completions", body, identity=identity), rounds
        ),
    }


def run(rounds: int = ROUNDS) -> dict[str, float]:
    """Median CPU microseconds of a decision; names end with the number of endpoints."""
    found, _ = text_decisions_us(rounds)
    return found | {f"7,000 tokens {count}": token_decision_us(count, rounds) for count in BUDGETS}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--profile", action="store_true")
    arguments = options.parse_args()
    write = sys.stdout.write
    for what, taken in parsing_us(arguments.rounds).items():
        write(f"{what}     p50 {taken:7.1f} us\n")
    found, decide = text_decisions_us(arguments.rounds)
    found |= {
        f"7,000 tokens {count}": token_decision_us(count, arguments.rounds) for count in BUDGETS
    }
    for name, taken in found.items():
        budget = BUDGETS[int(name.split()[-1])]
        write(f"decide, {name + ' endpoints':24s}  p50 {taken:7.1f} us  budget {budget}\n")
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: [decide(turn) for turn in range(arguments.rounds)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
