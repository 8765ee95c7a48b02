"""Streams that break after their first token: what goes on, what the client sees, who is billed."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import Answer, RawClient, message
from tests.routing.servers.scripted import (
    CHAT,
    MODEL,
    SECRET,
    Engine,
    Script,
    Stage,
    answers,
    chat,
    cuts,
    document,
    event,
    hangs,
    status_script,
)

WORDS = ["one ", "two ", "three ", "four ", "five "]
GOES_ON = {"limits": {"streams_continue": True, "attempts": 3, "first_token_timeout_seconds": 5.0}}
USAGE = {"stream_options": {"include_usage": True}}


def writes(*, dies_after: int | None = None, last: bytes = b"") -> Script:
    """An engine that counts on from its open last message, and may die after so many words."""

    async def script(engine: Engine, received: HttpRequest, client: Connection) -> None:
        body = json.loads(received.body)
        is_open = body.get("continue_final_message")
        begun = body["messages"][-1]["content"] if is_open else ""
        said = next(n for n in range(len(WORDS) + 1) if "".join(WORDS[:n]) == begun)
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(event({"role": "assistant", "content": ""}, id=f"by-{engine.name}"))
        for count, word in enumerate(WORDS[said:]):
            if count == dies_after:
                client.send(last)
                await asyncio.sleep(0.02)
                client.abort()
                return
            client.send(event({"content": word}, id=f"by-{engine.name}"))
        finish(client, engine, prompt=10 + said, completion=len(WORDS) - said)

    return script


def finish(client: Connection, engine: Engine, *, prompt: int, completion: int) -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    client.send(event(None, id=f"by-{engine.name}", choices=[choice]))
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage |= {"total_tokens": prompt + completion, "prompt_tokens_details": {"cached_tokens": 12}}
    client.send(event(None, usage=usage))
    client.send(b"data: [DONE]\n\n")
    client.close_stream()


def parts(answer: Answer) -> list[dict[str, Any]]:
    lines = [one for one in answer.events if one != "data: [DONE]"]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def text(answer: Answer) -> str:
    choices = [choice for part in parts(answer) for choice in part.get("choices", [])]
    return "".join(choice["delta"].get("content", "") for choice in choices)


def billed(used: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("endpoint", "outcome", "delivered", "prompt_tokens", "completion_tokens")
    return [tuple(one[name] for name in names) for one in used]


async def test_the_client_sees_one_stream_with_the_usage_of_the_whole(stage: Stage) -> None:
    await stage.engine("a", writes(dies_after=2))
    second = await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True, max_tokens=20, min_tokens=4, **USAGE))

    assert text(answer) == "".join(WORDS)
    assert answer.events[-1] == "data: [DONE]"
    assert {part["id"] for part in parts(answer)[:-1]} == {"by-a"}
    assert sum("role" in c["delta"] for part in parts(answer) for c in part["choices"]) == 1
    ends = [part for part in parts(answer) if "consort" in part]
    assert [end["consort"] for end in ends] == [{"continued": 1, "token_exact": False}]
    usage = parts(answer)[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (10, 5)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 10
    asked = second.requests[0]
    assert (asked["max_tokens"], asked["min_tokens"]) == (18, 2)
    assert asked["messages"][-1] == {"role": "assistant", "content": "one two "}
    assert (asked["add_generation_prompt"], asked["continue_final_message"]) == (False, True)


async def test_no_token_is_billed_twice_and_the_sum_is_the_engines(stage: Stage) -> None:
    await stage.engine("a", writes(dies_after=2))
    await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    await stage.ask(chat(stream=True))

    used = await stage.usage(2)
    (broken, whole) = billed(used)
    assert broken[:3] == ("a", "error", False)
    assert broken[4] == 2
    # The second engine counted a prompt of 12 and an output of 3.
    assert whole == ("b", "ok", True, 10, 5)
    assert whole[3] + whole[4] == 12 + 3
    assert used[1]["ttft_seconds"] < used[1]["ended_at"] - used[1]["received_at"]
    assert stage.leases_open == 0


async def test_an_engine_that_falls_silent_is_left(stage: Stage) -> None:
    async def stalls(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(event({"role": "assistant", "content": ""}) + event({"content": "one "}))
        await asyncio.sleep(600)

    silent = await stage.engine("a", stalls)
    await stage.engine("b", writes())
    await stage.load(limits=GOES_ON["limits"] | {"stall_timeout_seconds": 0.3})

    answer = await stage.ask(chat(stream=True))

    assert text(answer) == "".join(WORDS)
    async with asyncio.timeout(5):
        await silent.gone.wait()
    state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
    assert state["endpoints"][0]["breaker"]["last_failure"] == "stall"


async def test_a_client_that_asked_for_token_ids_gets_those_of_its_own_prompt(
    stage: Stage,
) -> None:
    async def with_ids(engine: Engine, received: HttpRequest, client: Connection) -> None:
        body = json.loads(received.body)
        prompt = body["prompt"] if isinstance(body["prompt"], list) else [1, 2]
        client.open_stream(200, content_type=b"text/event-stream")
        for number in range(len(prompt), 6):
            choice = {"index": 0, "text": f"{number} ", "token_ids": [number]}
            if number == len(prompt):
                choice["prompt_token_ids"] = prompt
            client.send(event(None, choices=[choice]))
            if engine.name == "a" and number == 3:
                await asyncio.sleep(0.02)
                client.abort()
                return
        finish(client, engine, prompt=len(prompt), completion=6 - len(prompt))

    await stage.engine("a", with_ids)
    second = await stage.engine("b", with_ids)
    await stage.load(**GOES_ON)
    body = {"model": MODEL, "prompt": "ask", "stream": True, "return_token_ids": True}

    answer = await stage.ask(body, path="/v1/completions")

    choices = [choice for part in parts(answer) for choice in part.get("choices", [])]
    assert second.requests[0]["prompt"] == [1, 2, 2, 3]
    assert [token for choice in choices for token in choice.get("token_ids", ())] == [2, 3, 4, 5]
    prompts = [choice["prompt_token_ids"] for choice in choices if choice.get("prompt_token_ids")]
    assert prompts == [[1, 2]]


async def test_an_answer_may_go_on_more_than_once(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        await stage.engine(name, writes(dies_after=1))
    await stage.engine("d", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True))

    assert text(answer) == "".join(WORDS)
    ends = [part["consort"]["continued"] for part in parts(answer) if "consort" in part]
    assert ends == [3]
    rows = billed(await stage.usage(4))
    assert [row[2] for row in rows] == [False, False, False, True]
    assert rows[-1][3:] == (10, 5)
    assert [row[4] for row in rows[:3]] == [1, 2, 3]


async def test_an_engine_that_says_in_its_stream_that_it_failed_is_left(stage: Stage) -> None:
    error = b'data: {"error":{"message":"EngineCore died","code":500}}\n\ndata: [DONE]\n\n'
    await stage.engine("a", writes(dies_after=2, last=error))
    await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True))

    assert text(answer) == "".join(WORDS)
    assert b"EngineCore" not in answer.body


@pytest.mark.lesson("B10")
async def test_without_leave_to_go_on_an_engines_own_error_counts_as_failed(stage: Stage) -> None:
    error = b'data: {"error":{"message":"EngineCore died","code":500}}\n\ndata: [DONE]\n\n'

    async def fails(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(event({"content": "half"}) + error)
        client.close_stream()

    await stage.engine("a", fails)
    await stage.load()

    answer = await stage.ask(chat(stream=True))

    assert b"EngineCore died" in answer.body
    assert (await stage.usage(1))[0]["outcome"] == "error"


@pytest.mark.lesson("B10")
async def test_a_tool_call_half_written_ends_with_an_error_event(stage: Stage) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"ci'}}

    async def calls_a_tool(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(event({"role": "assistant", "content": ""}))
        client.send(event({"tool_calls": [call]}))
        await asyncio.sleep(0.02)
        client.abort()

    await stage.engine("a", calls_a_tool)
    await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True, tools=[]))

    assert parts(answer)[-1]["error"]["code"] == "stream-interrupted"
    assert billed(await stage.usage(1))[0][:3] == ("a", "error", True)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"n": 2}, id="several-answers"),
        pytest.param({"response_format": {"type": "json_object"}}, id="grammar"),
        pytest.param({"structured_outputs": {"regex": "a+"}}, id="vllms-grammar"),
    ],
)
async def test_what_cannot_go_on_ends_with_an_error_event(
    stage: Stage, more: dict[str, Any]
) -> None:
    await stage.engine("a", writes(dies_after=2))
    await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True, **more))

    assert parts(answer)[-1]["error"]["code"] == "stream-interrupted"


async def test_a_stream_that_broke_behind_its_end_is_ended_here(stage: Stage) -> None:
    async def forgets_the_end(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(event({"content": "all"}))
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        client.send(event(None, choices=[choice]))
        await asyncio.sleep(0.02)
        client.abort()

    await stage.engine("a", forgets_the_end)
    other = await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True))

    assert answer.events[-1] == "data: [DONE]"
    assert text(answer) == "all"
    assert other.requests == []
    assert billed(await stage.usage(1))[0][:3] == ("a", "ok", True)


async def test_a_stream_that_broke_with_its_last_token_says_so_itself(stage: Stage) -> None:
    await stage.engine("a", writes(dies_after=2))
    other = await stage.engine("b", writes())
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True, max_tokens=2))

    assert text(answer) == "one two "
    assert parts(answer)[-1]["choices"][0]["finish_reason"] == "length"
    assert other.requests == []


@pytest.mark.parametrize(
    "other",
    [cuts, status_script(400), status_script(503), hangs],
    ids=["cuts", "400", "503", "hangs"],
)
async def test_when_nobody_goes_on_the_client_is_told_and_pays_what_it_got(
    stage: Stage, other: Script
) -> None:
    await stage.engine("a", writes(dies_after=2))
    await stage.engine("b", other)
    limits = GOES_ON["limits"] | {"first_token_timeout_seconds": 0.3, "attempts": 2}
    await stage.load(limits=limits)

    answer = await stage.ask(chat(stream=True))

    assert parts(answer)[-1]["error"]["code"] == "stream-interrupted"
    assert text(answer) == "one two "
    rows = billed(await stage.usage(2))
    delivered = [row for row in rows if row[2]]
    assert [row[:2] for row in delivered] == [("a", "error")]
    assert delivered[0][4] == 2
    assert stage.leases_open == 0


def text_until_error(answer: Answer) -> str:
    deltas = [c["delta"] for part in parts(answer) for c in part.get("choices", [])]
    return "".join(delta.get("content", "") for delta in deltas)


@pytest.mark.lesson("S02")
async def test_a_client_that_leaves_while_the_rest_is_looked_for_pays_what_it_got(
    stage: Stage,
) -> None:
    await stage.engine("a", writes(dies_after=2))
    waits = await stage.engine("b", hangs)
    await stage.load(**GOES_ON)

    async with RawClient(stage.router.port) as client:
        headers = {"authorization": f"Bearer {SECRET}"}
        await client.send(message("POST", CHAT, chat(stream=True), headers=headers))
        await client.head()
        async with asyncio.timeout(5):
            while not waits.requests:
                await asyncio.sleep(0.01)

    await asyncio.wait_for(waits.gone.wait(), 5)
    rows = billed(await stage.usage(2))
    assert [row[:3] for row in rows if row[2]] == [("a", "aborted", True)]
    await stage.no_leases()


async def test_only_an_engine_with_the_same_weights_goes_on(stage: Stage) -> None:
    await stage.engine("a", writes(dies_after=2))
    other, same = await stage.engine("b", writes()), await stage.engine("c", writes())
    pool = msgspec.to_builtins(document([*stage.engines.values()], **GOES_ON))
    pool["endpoints"][1]["kv_contract"]["model_revision"] = "r2"
    answer = await stage.push(json.dumps(pool).encode())
    assert answer.status == 200

    answer = await stage.ask(chat(stream=True))

    assert text(answer) == "".join(WORDS)
    assert (len(other.requests), len(same.requests)) == (0, 1)


async def test_a_stream_that_is_not_broken_is_left_as_it_is(stage: Stage) -> None:
    engine = await stage.engine("a", answers)
    await stage.load(**GOES_ON)

    answer = await stage.ask(chat(stream=True))

    assert "consort" not in answer.body.decode()
    assert engine.requests[0] == chat(stream=True, stream_options={"include_usage": True})
