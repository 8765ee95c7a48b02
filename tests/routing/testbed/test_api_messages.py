"""Anthropic's messages of the engine: the shape of vLLM's capture, streams, tools, counts."""

from typing import Any

import httpx
import pytest

from routing.testbed.api_messages import as_chat
from routing.testbed.errors import ApiError
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, named_events, sample, shape, url

PATH = "/v1/messages"
TOOL = {"name": "clock", "input_schema": {"type": "object"}}


def body(**more: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": "hello"}]
    return {"model": MODEL, "max_tokens": 4, "messages": turns} | more


async def test_answer_and_count_have_the_captured_shape(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, PATH), json=body())
    count = await client.post(url(engine, f"{PATH}/count_tokens"), json=body())

    assert shape(answer.json()) == shape(sample("messages_anthropic")["response"])
    assert shape(count.json()) == shape(sample("messages_count_tokens")["response"])
    assert answer.json()["usage"]["input_tokens"] == count.json()["input_tokens"]


async def test_a_stream_tells_the_same_in_order(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    whole = (await client.post(url(engine, PATH), json=body())).json()
    stream = await client.post(url(engine, PATH), json=body(stream=True))

    events = named_events(stream.text)
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[2:6] == ["content_block_delta"] * 4
    assert kinds[6:] == ["content_block_stop", "message_delta", "message_stop"]
    said = "".join(event["delta"]["text"] for event in events[2:6])
    assert said == whole["content"][0]["text"]
    assert events[-2]["usage"] == whole["usage"]
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"] == "max_tokens"


async def test_a_stop_sequence_is_named(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    text = (await client.post(url(engine, PATH), json=body())).json()["content"][0]["text"]

    answer = await client.post(url(engine, PATH), json=body(stop_sequences=[text[5:8]]))

    assert answer.json()["stop_reason"] == "stop_sequence"
    assert answer.json()["stop_sequence"] == text[5:8]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_is_called_and_its_result_answered(
    stream: bool, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    tools = {"tools": [TOOL], "tool_choice": {"type": "any"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "noon"}
    turns = [*body()["messages"], {"role": "user", "content": [result]}]

    asked = await client.post(url(engine, PATH), json=body(stream=stream, **tools))
    told = await client.post(url(engine, PATH), json=body(messages=turns, tools=[TOOL]))

    if stream:
        events = named_events(asked.text)
        assert events[1]["content_block"]["name"] == "clock"
        deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
        assert "".join(delta["partial_json"] for delta in deltas) == "{}"
    else:
        block = asked.json()["content"][0]
        assert (block["type"], block["name"], block["input"]) == ("tool_use", "clock", {})
        assert asked.json()["stop_reason"] == "tool_use"
    assert told.json()["content"][0]["type"] == "text"


@pytest.mark.parametrize("wrong", [{"max_tokens": None}, {"messages": 5}, {"max_tokens": "4"}])
def test_what_cannot_be_read_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        as_chat(body(**wrong))
