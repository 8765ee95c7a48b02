"""Both legs of a pair of SGLang between two simulated engines."""

import asyncio
from typing import Any

import httpx
import pytest

from routing.engines.sglang import ENGINE
from routing.testbed.engine import Engine
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import chat, completion, metric, sse_events, url

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
LONG = "x" * 8000


@pytest.fixture
async def pair(start_engine: StartEngine) -> tuple[Engine, Engine]:
    p = await start_engine(flavor="sglang", role="prefill")
    return p, await start_engine(flavor="sglang", role="decode", engine_id="d")


def met(prefill: Engine, room: int, body: dict[str, Any]) -> dict[str, Any]:
    return body | {
        "bootstrap_host": "127.0.0.1",
        "bootstrap_port": prefill.side_channel_port,
        "bootstrap_room": room,
    }


async def test_the_decode_engine_answers_what_one_engine_alone_would(
    pair: tuple[Engine, Engine], start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p, d = pair
    alone = await start_engine(flavor="sglang", role="both", engine_id="b")
    body = completion(LONG, max_tokens=40)

    first, second = await asyncio.gather(
        *(client.post(url(e, COMPLETIONS), json=met(p, 7, body)) for e in (p, d))
    )
    whole = await client.post(url(alone, COMPLETIONS), json=body)

    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json()["choices"] == whole.json()["choices"]
    assert first.json()["usage"]["completion_tokens"] == 1
    assert d.model.stats.external_transfer > 1900
    assert p.model.held == {}


async def test_a_stream_begins_when_the_prompt_came(
    pair: tuple[Engine, Engine], client: httpx.AsyncClient
) -> None:
    p, d = pair
    body = met(p, 8, chat(LONG, stream=True))

    decoding = asyncio.create_task(client.post(url(d, CHAT), json=body))
    await asyncio.sleep(0.05)
    is_early = decoding.done()
    first = await client.post(url(p, CHAT), json=body)
    second = await decoding

    assert not is_early
    assert len(sse_events(second.text)) == 9
    assert len(sse_events(first.text)) == 2


async def test_a_room_that_nobody_enters_fails_on_both_sides(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    settings: dict[str, Any] = {"flavor": "sglang", "kv_hold_seconds": 0.2}
    p = await start_engine(role="prefill", **settings)
    d = await start_engine(role="decode", engine_id="d", **settings)

    alone = [
        await client.post(url(engine, COMPLETIONS), json=met(p, room, completion(LONG)))
        for room, engine in ((1, p), (2, d))
    ]

    assert [answer.status_code for answer in alone] == [500, 500]
    assert p.model.held == {}


async def test_a_prefill_whose_client_left_keeps_nothing(
    pair: tuple[Engine, Engine], client: httpx.AsyncClient
) -> None:
    p, _ = pair

    with pytest.raises(httpx.ReadTimeout):
        await client.post(url(p, COMPLETIONS), json=met(p, 9, completion(LONG)), timeout=0.3)

    async with asyncio.timeout(5):
        while p.model.held:
            await asyncio.sleep(0.01)


async def test_its_page_and_its_load_report_are_read_as_sglangs(
    pair: tuple[Engine, Engine], client: httpx.AsyncClient
) -> None:
    p, d = pair
    body = met(p, 3, completion(LONG, max_tokens=5))
    await asyncio.gather(*(client.post(url(e, COMPLETIONS), json=body) for e in (p, d)))

    page = (await client.get(url(d, "/metrics"))).text
    loads = (await client.get(url(d, "/v1/loads?include=core"))).content

    signals = ENGINE.signals(page.encode())
    assert metric(page, "sglang:generation_tokens_total") == 5
    assert (signals.running, signals.waiting) == (0, 0)
    assert signals.generation_tokens_total == 5
    assert signals.block_size_tokens == 16
    assert signals.kv_capacity_tokens == d.model.limits.blocks * 16
    assert ENGINE.waiting_tokens(loads) == 0
