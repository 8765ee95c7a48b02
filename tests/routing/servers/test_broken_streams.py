"""Streams whose engine is killed, over real processes: where the pool allows it none is lost."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.routing.servers.client import Answer, RawClient, message, request
from tests.routing.servers.running import (
    ADMIN,
    CLIENT,
    Running,
    Start,
    engine_arguments,
    events,
    push,
    router_arguments,
    starter,
    state_of,
)
from tests.routing.servers.scripted import ADMIN_TOKEN, CHAT, MODEL, Engine, chat, document

pytestmark = pytest.mark.processes

STREAMS = 24
TOKENS = 150
COMPLETION = "/v1/completions"


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    async with starter() as run:
        yield run


@pytest.fixture
async def router(start: Start, tmp_path: Path) -> Running:
    token = tmp_path / "token"
    token.write_text(ADMIN_TOKEN + "\n")
    return await start(*router_arguments(tmp_path / "state", token))


async def stream(router: Running, path: str, body: dict[str, Any], begun: list[str]) -> Answer:
    """Read a stream to its end; notes when its third part has come."""
    async with RawClient(router.port) as client:
        await client.send(message("POST", path, body, headers=CLIENT))
        status, headers = await client.head()
        chunks: list[bytes] = []
        while chunk := await client.chunk():
            chunks.append(chunk)
            if len(chunks) == 3:
                begun.append(path)
        return Answer(status=status, headers=headers, body=b"".join(chunks), chunks=chunks)


def body_of(path: str, number: int, **more: Any) -> dict[str, Any]:
    asked = {"max_tokens": TOKENS, "ignore_eos": True, "temperature": 0, "stream": True}
    if path == CHAT:
        messages = [{"role": "user", "content": f"Question {number}. " * 20}]
        return chat(messages=messages, **asked, **more)
    return {"model": MODEL, "prompt": f"Question {number}. " * 20, **asked, **more}


def parts(answer: Answer) -> list[dict[str, Any]]:
    """Events of a stream that ends as it should."""
    assert answer.events[-1] == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in answer.events[:-1]]


def text_of(answer: Answer) -> str:
    choices = [choice for part in parts(answer) for choice in part["choices"]]
    return "".join(
        choice["delta"].get("content", "") if "delta" in choice else choice["text"]
        for choice in choices
    )


@pytest.mark.lesson("B10", "F04")
@pytest.mark.parametrize("mode", ["bytes", "engine"])
@pytest.mark.parametrize("path", [CHAT, COMPLETION])
async def test_killing_an_engine_loses_no_stream_and_changes_no_text(
    start: Start, router: Running, path: str, mode: str
) -> None:
    engines = {name: await start(*engine_arguments("both", speed=2)) for name in ("a", "b", "c")}
    wish = {"stream_options": {"include_usage": True}}
    bodies = [body_of(path, number, **wish) for number in range(STREAMS)]
    limits = {"streams_continue": True, "attempts": 3}
    await push(router, engines, limits=limits, prompt_identity={"mode": mode})
    begun: list[str] = []
    asking = [asyncio.create_task(stream(router, path, body, begun)) for body in bodies]
    async with asyncio.timeout(30):
        while len(begun) < STREAMS:
            await asyncio.sleep(0.01)

    await engines["a"].end(signal.SIGKILL)
    answers = await asyncio.gather(*asking)
    again = await asyncio.gather(*(stream(router, path, body, []) for body in bodies))

    assert {answer.status for answer in answers} == {200}
    assert [text_of(answer) for answer in answers] == [text_of(answer) for answer in again]
    continued = [answer for answer in answers if any("consort" in part for part in parts(answer))]
    assert continued
    ends = [part["consort"] for answer in continued for part in parts(answer) if "consort" in part]
    assert {end["token_exact"] for end in ends} == {mode != "bytes"}
    assert all(b'token_ids":[' not in answer.body for answer in answers)
    for answer, whole in zip(answers, again, strict=True):
        first, last = parts(answer)[0], parts(answer)[-1]
        assert {part["id"] for part in parts(answer)} == {first["id"]}
        assert last["usage"]["completion_tokens"] == TOKENS
        assert last["usage"]["prompt_tokens"] == parts(whole)[-1]["usage"]["prompt_tokens"]
    await check_books(router, continued=len(continued))


async def check_books(router: Running, *, continued: int) -> None:
    """Each answer is billed once and whole; what was computed for nothing is written down too."""
    state = await state_of(router)
    assert (state["requests"]["failed"], state["leases_open"]) == (0, 0)
    used = await events(router, 2 * STREAMS + continued)
    billed = [one for one in used if one["delivered"]]
    assert len(billed) == 2 * STREAMS
    assert {one["completion_tokens"] for one in billed} == {TOKENS}
    assert {one["outcome"] for one in billed} == {"ok"}
    assert len(used) == 2 * STREAMS + continued


async def test_sglangs_pairs_answer_as_one_engine_alone_would(
    start: Start, router: Running
) -> None:
    sglang = ("--flavor", "sglang")
    roles = {"p1": "prefill", "p2": "prefill", "d1": "decode", "d2": "decode"}
    engines = {name: await start(*engine_arguments(role, *sglang)) for name, role in roles.items()}
    alone = {"e": await start(*engine_arguments("both"))}
    bodies = [
        body_of(CHAT, number) | {"messages": [{"role": "user", "content": f"{number} " * 3000}]}
        for number in range(12)
    ]
    await push_sglang(router, engines, roles)
    answers = await asyncio.gather(*(stream(router, CHAT, body, []) for body in bodies))
    used = await events(router, 12)
    await push(router, alone, version=2)
    again = await asyncio.gather(*(stream(router, CHAT, body, []) for body in bodies))

    assert [text_of(answer) for answer in answers] == [text_of(answer) for answer in again]
    assert all(one["prefill_endpoint"] in ("p1", "p2") for one in used)
    assert {one["token_source"] for one in used} == {"engine"}
    assert (await state_of(router))["leases_open"] == 0


async def push_sglang(router: Running, engines: dict[str, Running], roles: dict[str, str]) -> None:
    async def nothing(*_: object) -> None:
        raise NotImplementedError

    specs = [Engine(name, nothing, port=engine.port) for name, engine in engines.items()]
    pool = msgspec.to_builtins(document(specs, roles=roles))
    pool["disaggregation"] = {"protocol": "sglang", "warm_up": False}
    for endpoint in pool["endpoints"]:
        running = engines[endpoint["id"]]
        endpoint |= {"engine": "sglang", "bootstrap_port": running.ready["side_channel_port"]}
        endpoint["kv_contract"]["engine"] = "sglang"
    raw = json.dumps(pool).encode()
    answer = await request(router.admin_port, "PUT", "/admin/pool-document", raw, headers=ADMIN)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("victim", ["p1", "d1"])
async def test_killing_an_end_of_pairs_loses_no_stream(
    start: Start, router: Running, victim: str
) -> None:
    roles = {"p1": "prefill", "p2": "prefill", "d1": "decode", "d2": "decode"}
    engines = {name: await start(*engine_arguments(role, speed=2)) for name, role in roles.items()}
    bodies = [
        body_of(CHAT, number) | {"messages": [{"role": "user", "content": f"{number} " * 3000}]}
        for number in range(16)
    ]
    limits = {"streams_continue": True, "attempts": 4}
    await push(router, engines, roles=roles, limits=limits)
    begun: list[str] = []
    asking = [asyncio.create_task(stream(router, CHAT, body, begun)) for body in bodies]
    async with asyncio.timeout(30):
        while len(begun) < 4:
            await asyncio.sleep(0.01)

    await engines[victim].end(signal.SIGKILL)
    answers = await asyncio.gather(*asking)
    again = await asyncio.gather(*(stream(router, CHAT, body, []) for body in bodies))

    assert [text_of(answer) for answer in answers] == [text_of(answer) for answer in again]
    state = await state_of(router)
    assert (state["requests"]["failed"], state["leases_open"]) == (0, 0)
