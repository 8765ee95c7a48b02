"""The embedded proxy against scripted engines: answers, streams, failures, clients that leave."""

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
    Script,
    Stage,
    answers,
    chat,
    cuts,
    cuts_in_the_middle,
    event,
    hangs,
    status_script,
    streams_forever,
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


async def test_the_clients_key_stays_at_the_router(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()

    await stage.ask(chat(), x_gateway_destination_endpoint="1.2.3.4:80", traceparent="00-1-2-01")

    headers = engine.headers[0]
    assert b"authorization" not in headers
    assert b"x-gateway-destination-endpoint" not in headers
    assert headers[b"traceparent"] == b"00-1-2-01"


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


FAILURES: list[tuple[str, Script]] = [
    ("connection-cut", cuts),
    ("500", status_script(500)),
    ("503", status_script(503)),
    ("502", status_script(502)),
]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in FAILURES])
async def test_before_the_first_byte_another_endpoint_is_tried(
    stage: Stage, script: Script, *, is_stream: bool
) -> None:
    bad, good = await stage.engine("bad", script), await stage.engine("good")
    await stage.load()

    answers_got = [await stage.ask(chat(stream=is_stream)) for _ in range(2)]

    assert [answer.status for answer in answers_got] == [200, 200]
    assert all(b"good" in answer.body for answer in answers_got)
    assert bad.requests
    assert len(good.requests) == 2
    used = await stage.usage(2 + len(bad.requests))
    failed = [one for one in used if one["outcome"] == "error"]
    assert [(one["endpoint"], one["delivered"]) for one in failed] == [("bad", False)] * len(failed)
    assert stage.leases_open == 0


async def test_a_refused_connection_goes_to_another_endpoint(stage: Stage) -> None:
    dead, _ = await stage.engine("dead"), await stage.engine("good")
    await stage.load()
    await dead.stop()

    answers_got = [await stage.ask(chat()) for _ in range(3)]

    assert [answer.status for answer in answers_got] == [200] * 3


async def test_an_engine_that_says_nothing_in_time_is_left(stage: Stage) -> None:
    silent, _ = await stage.engine("silent", hangs), await stage.engine("good")
    limits = {"attempts": 3, "first_token_timeout_seconds": 0.5, "stall_timeout_seconds": 0.5}
    await stage.load(limits=limits)

    answers_got = [await stage.ask(chat(stream=True)) for _ in range(2)]

    assert [answer.status for answer in answers_got] == [200, 200]
    async with asyncio.timeout(5):
        await silent.gone.wait()


async def test_a_clients_mistake_is_passed_on_and_not_tried_elsewhere(stage: Stage) -> None:
    body = b'{"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}'
    engine = await stage.engine("a", status_script(400, body))
    other = await stage.engine("b", status_script(400, body))
    await stage.load()

    answer = await stage.ask(chat(stream=True))

    assert (answer.status, answer.body) == (400, body)
    assert len(engine.requests) + len(other.requests) == 1
    state = (await stage.admin("GET", "/admin/state")).json
    breakers = [one["breaker"]["state"] for one in state["pools"]["main"]["endpoints"]]
    assert breakers == ["closed", "closed"]


async def test_when_all_fail_the_last_engines_answer_is_passed_on(stage: Stage) -> None:
    await stage.engine("a", status_script(500, b'{"error":{"message":"CUDA"}}'))
    await stage.load()

    answer = await stage.ask(chat())

    assert (answer.status, answer.json) == (500, {"error": {"message": "CUDA"}})
    assert stage.router.state.requests.failed == 1


async def test_when_nobody_can_be_reached_the_router_says_so(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()
    await engine.stop()

    answer = await stage.ask(chat())

    assert answer.status == 503
    assert answer.json["error"]["code"] == "no-capacity"
    assert answer.headers["retry-after"]


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


@pytest.mark.parametrize(
    ("script", "is_stream"),
    [
        pytest.param(hangs, False, id="while-waiting"),
        pytest.param(hangs, True, id="before-the-first-token"),
        pytest.param(streams_forever, True, id="while-streaming"),
    ],
)
async def test_lesson_s02_a_client_that_leaves_frees_the_engine_and_its_lease(
    stage: Stage, script: Script, *, is_stream: bool
) -> None:
    engine = await stage.engine("a", script)
    await stage.load()

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(stream=is_stream), headers=AUTHORIZED))
        if script is streams_forever:
            await client.head()
            await client.chunk()
        else:
            async with asyncio.timeout(5):
                while not engine.requests:
                    await asyncio.sleep(0.005)

    async with asyncio.timeout(5):
        await engine.gone.wait()
    await stage.no_leases()
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"]) == ("aborted", 499)
    if script is streams_forever:
        assert used["token_source"] == "counted_by_router"
        assert used["completion_tokens"] >= 1
    else:
        assert used["completion_tokens"] is None


async def test_a_kept_connection_that_the_engine_closed_is_replaced_unseen(stage: Stage) -> None:
    async def answer_and_close(engine: Engine, received: HttpRequest, client: Connection) -> None:
        await answers(engine, received, client)
        asyncio.get_running_loop().call_later(0.01, client.abort)

    await stage.engine("a", answer_and_close)
    await stage.load(limits={"attempts": 1})

    for _ in range(5):
        answer = await stage.ask(chat())
        assert answer.status == 200

    assert stage.router.state.requests.failed == 0


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


@pytest.mark.parametrize("size", [200_000, 5_000_000], ids=["200k", "5M"])
async def test_lesson_b01_large_bodies_come_through(stage: Stage, size: int) -> None:
    engine = await stage.engine("a")
    await stage.load(models=[{"name": "granite-4.1-8b", "max_model_len": 10_000_000}])
    text = "word " * (size // 5)

    answer = await stage.ask(chat(messages=[{"role": "user", "content": text}]))

    assert answer.status == 200, answer.body
    assert engine.requests[0]["messages"][0]["content"] == text


async def test_requests_beyond_the_routers_bound_are_refused(stage: Stage) -> None:
    engine = await stage.engine("a", hangs)
    await stage.load(limits={"concurrent_requests": 1})

    async with RawClient(stage.router.port) as client:
        await client.send(message("POST", CHAT, chat(), headers=AUTHORIZED))
        async with asyncio.timeout(5):
            while not engine.requests:
                await asyncio.sleep(0.005)
        answer = await stage.ask(chat())

    assert answer.status == 429
    assert answer.json["error"]["code"] == "router-busy"


async def test_a_refusal_is_accounted_with_its_tenant(stage: Stage) -> None:
    await stage.load()

    answer = await stage.ask(chat())

    assert (answer.status, answer.json["error"]["code"]) == (503, "no-capacity")
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"], used["tenant"]) == ("refused", 503, "tenant-ana")
    assert used["endpoint"] is None
    assert used["prompt_tokens"] is None


async def test_lesson_n01_a_storm_of_leaving_clients_leaves_nothing_behind(stage: Stage) -> None:
    engine = await stage.engine("a", streams_forever)
    await stage.load()

    async def leave_after(chunks: int) -> None:
        async with RawClient(stage.router.port) as client:
            await client.send(message("POST", CHAT, chat(stream=True), headers=AUTHORIZED))
            if chunks:
                await client.head()
            for _ in range(chunks):
                await client.chunk()

    await asyncio.gather(*(leave_after(number % 6) for number in range(150)))
    await stage.no_leases()

    # What stays open belongs to the scraper; every stream's own connection was cut.
    async with asyncio.timeout(5):
        while len(engine.server.connections) > 1:
            await asyncio.sleep(0.01)
    pool = stage.router.state.directory.pools["main"]
    assert pool.running == 0
    assert stage.router.state.requests.failed == 0
