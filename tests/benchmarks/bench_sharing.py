"""One shared system prompt, many conversations: are all endpoints used, and is the cache?

    python -m tests.benchmarks.bench_sharing [--policies consort,llm-d-weighted]

Eight simulated engines of one class, 96 conversations of five turns over one system prompt, 48 at
once; each turn carries the answers so far. Writes `var/bench/sharing.json`.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvloop

from routing.testbed import tokens as tk
from tests.benchmarks import fleet, processes
from tests.benchmarks.fleet import KEY, MODEL, Fleet, Router

OUT = Path("var/bench/sharing.json")
CONVERSATIONS, TURNS, AT_ONCE = 96, 5, 48
SYSTEM_TOKENS, QUESTION_TOKENS, ANSWER_TOKENS = 3000, 200, 60
POLICIES = ("consort", "llm-d-weighted", "llm-d-precise", "random")


def text(seed: int, tokens: int) -> str:
    """Words that are one token each."""
    numbers = np.random.default_rng(seed).integers(0, len(tk.PIECES), tokens)
    return b"".join(tk.PIECES[number] for number in numbers).decode()


async def converse(client: httpx.AsyncClient, number: int, rows: list[dict[str, Any]]) -> None:
    """Five turns, one after the other."""
    messages = [{"role": "system", "content": text(0, SYSTEM_TOKENS)}]
    for turn in range(TURNS):
        question = text(1000 + number * TURNS + turn, QUESTION_TOKENS)
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": await ask(client, messages, rows)})


async def ask(
    client: httpx.AsyncClient, messages: list[dict[str, str]], rows: list[dict[str, Any]]
) -> str:
    """One streamed answer; its first delay and its token counts go into `rows`."""
    body = {
        "model": MODEL, "messages": messages, "stream": True, "max_tokens": ANSWER_TOKENS,
        "ignore_eos": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    began, first, said = time.perf_counter(), None, []
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            first = first or time.perf_counter()
            event = json.loads(line[6:])
            said += [choice["delta"].get("content") or "" for choice in event["choices"]]
            if event.get("usage"):
                details = event["usage"]["prompt_tokens_details"]
                rows.append(
                    {
                        "ttft": (first or began) - began,
                        "prompt": event["usage"]["prompt_tokens"],
                        "cached": details["cached_tokens"],
                    }
                )
    return "".join(said)


async def drive(router: Router) -> list[dict[str, Any]]:
    """All conversations, 48 at once."""
    rows: list[dict[str, Any]] = []
    gate = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(
        base_url=router.url, timeout=120, headers={"authorization": f"Bearer {KEY}"},
        limits=httpx.Limits(max_connections=AT_ONCE),
    ) as client:  # fmt: skip

        async def one(number: int) -> None:
            async with gate:
                await converse(client, number, rows)

        await asyncio.gather(*(one(number) for number in range(CONVERSATIONS)))
    return rows


def measure(pool: Fleet, router: Router, policy: str) -> dict[str, Any]:
    """Empty caches, run, and see who answered."""
    for engine in pool.running:
        processes.post(engine.port, "/reset_prefix_cache", b"")
    pool.push(router, policy={"name": policy}, prompt_identity={"mode": "engine"})
    fleet.admin(router, "POST", "/admin/reset-knowledge", {"pool": "fleet"})
    before = [answered(engine.port) for engine in pool.running]
    rows = uvloop.run(drive(router))
    shares = [answered(e.port) - b for e, b in zip(pool.running, before, strict=True)]
    return {
        "policy": policy,
        "requests": len(rows),
        "endpoints_used": sum(share > 0 for share in shares),
        "requests_per_endpoint": [int(share) for share in shares],
        "cached_share": round(sum(r["cached"] for r in rows) / sum(r["prompt"] for r in rows), 3),
        "ttft_ms_p50": round(1000 * float(np.median([row["ttft"] for row in rows])), 1),
    }


def answered(port: int) -> float:
    """Requests that an engine has finished, by its own counter."""
    page = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    lines = (line for line in page.splitlines() if line.startswith("vllm:request_success_total"))
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def main() -> None:
    """Measure each policy and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default=",".join(POLICIES))
    options = parser.parse_args()
    events = ("--kv-events-port", "0", "--kv-replay-port", "0")
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="sharing-") as folder,
        Fleet(folder=Path(folder), engines={"amd-mi325x": 8}, engine_options=events) as pool,
    ):
        router = pool.start_router("sharing")
        for policy in options.policies.split(","):
            rows.append(measure(pool, router, policy))
            print(json.dumps(rows[-1]), flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
