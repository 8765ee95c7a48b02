"""A prompt computed by one real engine and decoded by another, with NIXL over loopback."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.e2e.vllm.engines import BLOCK_TOKENS, MODEL, VllmEngine, free_ports, running
from tests.e2e.vllm.pools import Pool, document, serving, until
from tests.e2e.vllm.talk import COMPLETION, Talk

PAIRS = 20
KV_BLOCKS = 1000
OUTPUT_TOKENS = 8
WARM_UP_TOKENS = 200


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, VllmEngine]]:
    found = {
        "prefill-a": _engine("p", "kv_producer", core=0),
        "decode-b": _engine("d", "kv_consumer", core=1),
    }
    with running(*found.values()):
        yield found


def _engine(name: str, role: str, *, core: int) -> VllmEngine:
    transfer = {"kv_connector": "NixlConnector", "kv_role": role, "kv_buffer_device": "cpu"}
    [port] = free_ports(1)
    return VllmEngine(
        name,
        core=core,
        arguments=(
            *("--kv-transfer-config", json.dumps(transfer)),
            *("--num-gpu-blocks-override", str(KV_BLOCKS)),
        ),
        environment={
            "UCX_TLS": "tcp,self,sm",
            "UCX_NET_DEVICES": "lo",
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(port),
        },
    )


async def test_pairs_answer_as_one_engine_does_and_a_cold_one_is_warmed_first(
    engines: dict[str, VllmEngine], tmp_path: Path, figures: list[str]
) -> None:
    decode = engines["decode-b"]
    rules = {"minimum_uncached_tokens": 2 * BLOCK_TOKENS}
    wanted = document(
        engines,
        kv_tokens=KV_BLOCKS * BLOCK_TOKENS,
        role_mode="disaggregated",
        disaggregation=rules,
    )
    talk = Talk(seed=20)
    async with serving(tmp_path) as pool:
        assert await counted(decode, "vllm:prompt_tokens_total") == 0, "nothing may warm it before"
        await pool.push(wanted)
        await until(lambda: is_warm(decode), what="the first ordinary prompt")
        await until(lambda: pairs(pool, talk.book()), what="a pair that may be used")
        found = [await compared(pool, decode, talk.book()) for _ in range(PAIRS)]

        decode.stop(signal.SIGKILL)
        decode.start()
        await asyncio.to_thread(decode.wait)
        at_once = await pool.ask(COMPLETION, completion(talk.book()))
        await until(lambda: is_warm(decode), what="the first prompt of its second life")
        await until(lambda: pairs(pool, talk.book()), what="a pair again")
        again = await compared(pool, decode, talk.book())

    figures += [
        f"pairs with the unsplit first token: {sum(one.first for one in found)} of {PAIRS}",
        f"  with all {OUTPUT_TOKENS} tokens: {sum(one.all for one in found)} of {PAIRS}",
        f"  after a restart of the decode engine: {again}",
    ]
    assert at_once.status_code == 200, at_once.text
    assert all(one.first for one in [*found, again])


class Equal(NamedTuple):
    """Whether the tokens of a pair are those of one engine."""

    first: bool
    all: bool


async def compared(pool: Pool, decode: VllmEngine, prompt: str) -> Equal:
    """Ask a pair, then the decode engine alone; its cache salt makes it compute the prompt."""
    body = completion(prompt)
    answer = await pool.ask(COMPLETION, body)
    assert answer.status_code == 200, answer.text
    decision = await pool.decision(answer)
    assert (decision["prefill"], decision["destination"]) == ("prefill-a", "decode-b")
    split = answer.json()["choices"][0]["token_ids"]
    unsplit = await alone(decode, body | {"cache_salt": "unsplit"})
    assert len(split) == len(unsplit) == OUTPUT_TOKENS
    return Equal(first=split[0] == unsplit[0], all=split == unsplit)


def completion(prompt: str) -> dict[str, Any]:
    return {
        "model": MODEL,
        "prompt": prompt,
        "max_tokens": OUTPUT_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }


async def alone(engine: VllmEngine, body: dict[str, Any]) -> list[int]:
    """Output tokens of one engine that does everything."""
    async with httpx.AsyncClient(timeout=120) as client:
        answer = await client.post(f"http://127.0.0.1:{engine.port}{COMPLETION}", json=body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["choices"][0]["token_ids"])


async def counted(engine: VllmEngine, name: str) -> float:
    """A counter of an engine's metrics page, 0 before it was counted."""
    async with httpx.AsyncClient(timeout=30) as client:
        page = (await client.get(f"http://127.0.0.1:{engine.port}/metrics")).text
    found = [line.split()[-1] for line in page.splitlines() if line.startswith(name + "{")]
    return sum(map(float, found))


async def is_warm(engine: VllmEngine) -> bool:
    """It has answered an ordinary prompt of some size; only the router sends any before a pair."""
    return await counted(engine, "vllm:prompt_tokens_total") > WARM_UP_TOKENS


async def pairs(pool: Pool, prompt: str) -> bool:
    """Whether a prompt would be split."""
    found = await pool.explained(COMPLETION, completion(prompt))
    return found["prefill"] == "prefill-a"
