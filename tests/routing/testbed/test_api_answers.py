"""Answers have the shapes of vLLM 0.32's captures, whole and streamed."""

from typing import Any

import httpx
import pytest

from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import chat, completion, sample, shape, sse_events, url

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def without_details(value: dict[str, Any]) -> dict[str, Any]:
    """A shape without `prompt_tokens_details`, which the captured engine did not report."""
    usage = value.get("usage")
    if isinstance(usage, dict):
        usage.pop("prompt_tokens_details", None)
    return value


@pytest.mark.parametrize(
    ("path", "body", "capture"),
    [(CHAT, chat(), "chat"), (COMPLETIONS, completion(), "completion")],
)
async def test_a_whole_answer_has_the_captured_shape(
    path: str,
    body: dict[str, Any],
    capture: str,
    start_engine: StartEngine,
    client: httpx.AsyncClient,
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, path), json=body)

    expected = without_details(shape(sample(capture)["response"]))
    assert answer.status_code == 200
    assert without_details(shape(answer.json())) == expected


@pytest.mark.parametrize(
    ("path", "body", "capture"),
    [(CHAT, chat(), "chat_stream"), (COMPLETIONS, completion(), "completion_stream")],
)
async def test_a_stream_has_the_captured_events(
    path: str,
    body: dict[str, Any],
    capture: str,
    start_engine: StartEngine,
    client: httpx.AsyncClient,
) -> None:
    engine = await start_engine()
    streamed = body | {"stream": True, "stream_options": {"include_usage": True}}

    answer = await client.post(url(engine, path), json=streamed)

    captured = sse_events("\n".join(sample(capture)["sse_lines"]))
    events = sse_events(answer.text)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [without_details(shape(e)) for e in events] == [shape(e) for e in captured]
    assert [list(event) for event in events] == [list(event) for event in captured]


async def test_continuous_usage_stands_in_every_event(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(prompt_tokens_details=False)
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = completion(max_tokens=4, stream=True, stream_options=options)

    answer = await client.post(url(engine, COMPLETIONS), json=body)

    captured = sse_events("\n".join(sample("completion_stream_continuous_usage")["sse_lines"]))
    events = sse_events(answer.text)
    assert [shape(event) for event in events] == [shape(event) for event in captured]
    assert [event["usage"]["completion_tokens"] for event in events] == [1, 2, 3, 4, 4]


async def test_without_details_cached_tokens_are_null(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(prompt_tokens_details=False)

    answer = await client.post(url(engine, CHAT), json=chat())

    assert shape(answer.json()) == shape(sample("chat")["response"])


async def test_the_same_prompt_gives_the_same_text_streamed_or_not(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(stream_interval=3)

    whole = await client.post(url(engine, CHAT), json=chat(temperature=0.7))
    stream = await client.post(url(engine, CHAT), json=chat(stream=True))

    texts = [e["choices"][0]["delta"].get("content", "") for e in sse_events(stream.text)]
    assert "".join(texts) == whole.json()["choices"][0]["message"]["content"]
    assert len(texts) == 1 + 1 + 3


async def test_an_answer_ends_by_itself_when_it_is_allowed_to(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    body = completion(ignore_eos=False, max_tokens=None)

    answer = (await client.post(url(engine, COMPLETIONS), json=body)).json()

    assert answer["choices"][0]["finish_reason"] == "stop"
    assert 128 <= answer["usage"]["completion_tokens"] < 640
