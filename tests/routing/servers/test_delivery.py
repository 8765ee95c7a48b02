"""Answers and streams on their way to the client, and how a broken one ends."""

import asyncio
import json

import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import RawClient, message
from tests.routing.servers.scripted import (
    CHAT,
    SECRET,
    Engine,
    Stage,
    chat,
    cuts_in_the_middle,
    event,
)

AUTHORIZED = {"authorization": f"Bearer {SECRET}"}


async def test_an_answer_comes_through_as_the_engine_gave_it(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()

    answer = await stage.ask(chat(user="u", unknown_field=[1]), x_request_id="my-id")

    assert answer.status == 200
    assert answer.json["choices"][0]["message"]["content"] == "from a"
    assert answer.headers["x-request-id"] == "my-id"
    assert answer.headers["x-consort-decision-id"]
    assert engine.requests == [chat(user="u", unknown_field=[1])]


async def test_a_stream_without_wish_for_usage_has_no_usage_event_but_is_metered(
    stage: Stage,
) -> None:
    engine = await stage.engine("a")
    await stage.load()

    answer = await stage.ask(chat(stream=True))

    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "usage" not in answer.body.decode()
    assert len(answer.events) == 5
    assert answer.events[-1] == "data: [DONE]"
    assert engine.requests[0]["stream_options"] == {"include_usage": True}
    used = (await stage.usage(1))[0]
    assert (used["prompt_tokens"], used["cached_tokens"], used["completion_tokens"]) == (12, 11, 3)
    assert used["token_source"] == "engine"
    assert used["outcome"] == "ok"
    assert used["ttft_seconds"] > 0


async def test_a_client_that_asked_for_usage_gets_its_event(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await stage.ask(chat(stream=True, stream_options={"include_usage": True}))

    usage = json.loads(answer.events[-2].removeprefix("data: "))["usage"]
    assert usage["completion_tokens"] == 3


async def test_events_cut_anywhere_arrive_whole(stage: Stage) -> None:
    async def in_pieces(engine: Engine, received: HttpRequest, client: Connection) -> None:
        data = b"".join(
            [event({"content": f"w{number}"}) for number in range(4)]
            + [event(None, usage={"prompt_tokens": 4, "completion_tokens": 4}), b"data: [DONE]\n\n"]
        )
        client.open_stream(200, content_type=b"text/event-stream")
        for start in range(0, len(data), 7):
            client.send(data[start : start + 7])
            await asyncio.sleep(0)
        client.close_stream()

    await stage.engine("a", in_pieces)
    await stage.load()

    answer = await stage.ask(chat(stream=True))

    assert len(answer.events) == 5
    assert all(chunk.endswith(b"\n\n") for chunk in answer.chunks)
    assert (await stage.usage(1))[0]["completion_tokens"] == 4


@pytest.mark.lesson("B02")
async def test_hop_by_hop_headers_stay_on_their_hop(stage: Stage) -> None:
    async def chatters(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(
            200,
            content_type=b"text/event-stream",
            headers=b"keep-alive: timeout=5\r\ntrailer: x\r\nproxy-authenticate: y\r\nte: z\r\n",
        )
        client.send(event({"content": "x"}) + b"data: [DONE]\n\n")
        client.close_stream()

    await stage.engine("a", chatters)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(stream=True), headers=AUTHORIZED))
        async with asyncio.timeout(5):
            head = (await client.reader.readuntil(b"\r\n\r\n")).lower()

    assert head.count(b"transfer-encoding") == 1
    for name in (b"keep-alive", b"trailer", b"proxy-authenticate", b"te:"):
        assert b"\r\n" + name not in head


@pytest.mark.lesson("B10")
async def test_after_the_first_byte_the_stream_ends_with_an_error_event(stage: Stage) -> None:
    await stage.engine("a", cuts_in_the_middle)
    await stage.load()

    answer = await stage.ask(chat(stream=True))

    assert answer.status == 200
    assert "half" in answer.events[1]
    error = json.loads(answer.events[-1].removeprefix("data: "))["error"]
    assert error["code"] == "stream-interrupted"
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["token_source"]) == ("error", "counted_by_router")
    assert (used["completion_tokens"], used["delivered"]) == (1, True)
    assert stage.router.state.requests.failed == 1


async def test_a_stream_that_stalls_ends_with_an_error_event(stage: Stage) -> None:
    async def stalls(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(event({"content": "one"}))
        await asyncio.sleep(600)

    await stage.engine("a", stalls)
    await stage.load(limits={"stall_timeout_seconds": 0.5})

    answer = await stage.ask(chat(stream=True))

    assert "silent" in answer.events[-1]


async def test_a_client_that_reads_slowly_gets_every_event(stage: Stage) -> None:
    count, is_full = 1500, asyncio.Event()

    async def flood(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        for number in range(count):
            client.send(event({"content": f"{number} " + "x" * 20_000}))
            while client.paused:
                is_full.set()
                await asyncio.sleep(0.001)
        client.close_stream()

    await stage.engine("a", flood)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(stream=True), headers=AUTHORIZED))
        async with asyncio.timeout(10):
            await is_full.wait()
        answer = await client.answer()

    assert len(answer.events) == count
    assert (await stage.ask(chat(stream=True))).status == 200
