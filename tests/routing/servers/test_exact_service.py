"""Mode `engine` with real processes: what the router predicts is what the engine finds cached."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.routing.servers.client import request
from tests.routing.servers.running import (
    CLIENT,
    Running,
    Start,
    ask,
    engine_arguments,
    push,
    router_arguments,
    starter,
    state_of,
)
from tests.routing.servers.scripted import ADMIN_TOKEN, CHAT, MODEL, SECRET, key

SYSTEM = "You are the clerk of a large archive and answer in one sentence. " * 60
EXPLAINED: dict[str, Any] = {
    "prompt_identity": {"mode": "engine"},
    "keys": [key("ana", SECRET, may_test=True)],
}


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    async with starter() as run:
        yield run


def chat(question: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    return {"model": MODEL, "messages": messages, "max_tokens": 2}


async def explained(router: Running, body: dict[str, Any]) -> dict[str, Any]:
    question = {"path": CHAT, "body": body}
    answer = await request(router.port, "POST", "/v1/explain", question, headers=CLIENT)
    assert answer.status == 200, answer.body
    return answer.json


async def known(router: Running, body: dict[str, Any]) -> dict[str, Any]:
    """The decision on a body once all its tokens are known."""
    async with asyncio.timeout(15):
        while True:
            found = await explained(router, body)
            if not {"tokens-not-known-yet", "tokeniser-unavailable", "tokens-partly-unknown"} & set(
                found["degraded"]
            ):
                return found
            await asyncio.sleep(0.05)


@pytest.mark.lesson("X07")
async def test_predicted_hits_are_the_engines_own(start: Start, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(ADMIN_TOKEN)
    engine = await start(*engine_arguments("both"))
    router = await start(*router_arguments(tmp_path / "state", token))
    await push(router, {"a": engine}, **EXPLAINED)
    await known(router, chat("first?"))

    await ask(router, chat("first?"))
    decision = await known(router, chat("second?"))
    answer = await ask(router, chat("second?"))

    cached = answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 900
    assert decision["candidates"][0]["hit_tokens"] == cached
    assert decision["predicted"]["hit_tokens"] == cached
    findings = (await state_of(router))["pools"]["main"]["findings"]
    assert "tokeniser-mismatch" not in {finding["code"] for finding in findings}


@pytest.mark.lesson("X07")
async def test_a_router_that_sent_nothing_knows_a_prompt_from_the_engines_events(
    start: Start, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(ADMIN_TOKEN)
    events = ("--kv-events-port", "0", "--kv-replay-port", "0")
    engine = await start(*engine_arguments("both", *events))
    sender, other = [
        await start(*router_arguments(tmp_path / name, token)) for name in ("sender", "other")
    ]
    for router in (sender, other):
        await push(router, {"a": engine}, **EXPLAINED)
    await known(other, chat("first?"))

    await ask(sender, chat("first?"))
    async with asyncio.timeout(15):
        while not (await known(other, chat("second?")))["candidates"][0]["hit_tokens"]:
            await asyncio.sleep(0.05)
    decision = await known(other, chat("second?"))
    answer = await ask(sender, chat("second?"))

    cached = answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert decision["candidates"][0]["hit_tokens"] == cached > 900
