"""Responses of the engine: the shape of vLLM's capture, streams, tools."""

import json
from typing import Any

import httpx
import pytest

from routing.testbed.api_responses import as_chat
from routing.testbed.errors import ApiError
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, named_events, sample, shape, url

PATH = "/v1/responses"
TOOL = {"type": "function", "name": "clock", "parameters": {"type": "object"}}


def body(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "input": "hello", "max_output_tokens": 4, "ignore_eos": True} | more


async def test_a_whole_answer_has_the_captured_shape(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, PATH), json=body())

    assert shape(answer.json()) == shape(sample("responses")["response"])
    assert answer.json()["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_a_stream_tells_the_same_in_order(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    whole = (await client.post(url(engine, PATH), json=body())).json()
    stream = await client.post(url(engine, PATH), json=body(stream=True))

    events = named_events(stream.text)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[4:8] == ["output_text.delta"] * 4
    assert kinds[8:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]
    text = whole["output"][0]["content"][0]["text"]
    assert "".join(event.get("delta", "") for event in events) == text
    last = events[-1]["response"]
    assert last["output"][0]["content"] == whole["output"][0]["content"]
    assert last["usage"]["output_tokens"] == whole["usage"]["output_tokens"] == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_is_called(
    stream: bool, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    wish = body(tools=[TOOL], tool_choice={"type": "function", "name": "clock"}, stream=stream)

    answer = await client.post(url(engine, PATH), json=wish)

    done = named_events(answer.text)[-1]["response"] if stream else answer.json()
    assert done["status"] == "completed"
    call = done["output"][0]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == (
        "function_call", "clock", {},
    )  # fmt: skip


def test_items_become_messages() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "time?"}]},
        {"type": "function_call", "call_id": "c", "name": "clock", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "noon"},
    ]

    messages = as_chat(body(input=items, instructions="Be short."))["messages"]

    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize(
    "wrong", [{"input": 5}, {"input": [5]}, {"previous_response_id": "r"}, {"instructions": 5}]
)
def test_what_cannot_be_read_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        as_chat(body(**wrong))
