"""Several choices, stop strings, log-probabilities and calls of tools over the engine's API."""

from typing import Any

import httpx
import pytest

from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, chat, completion, metric, sse_events, url

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
TOOL = {"type": "function", "function": {"name": "clock", "parameters": SCHEMA}}


def texts_of(events: list[dict[str, Any]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for event in events:
        for choice in event["choices"]:
            said = choice.get("text") or choice.get("delta", {}).get("content") or ""
            found[choice["index"]] = found.get(choice["index"], "") + said
    return found


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat()), (COMPLETIONS, completion())])
async def test_choices_are_the_same_streamed_or_not_and_their_prompt_counts_once(
    path: str, body: dict[str, Any], start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    wish = {"n": 3, "max_tokens": 6}

    whole = (await client.post(url(engine, path), json=body | wish)).json()
    options = {"stream": True, "stream_options": {"include_usage": True}}
    stream = await client.post(url(engine, path), json=body | wish | options)

    events = sse_events(stream.text)
    texts = [one.get("text") or one["message"]["content"] for one in whole["choices"]]
    assert len(set(texts)) == 3
    assert texts_of(events) == dict(enumerate(texts))
    for usage in (whole["usage"], events[-1]["usage"]):
        assert usage["completion_tokens"] == 18
        assert usage["total_tokens"] == usage["prompt_tokens"] + 18
    assert stream.text.count("[DONE]") == 1


async def test_the_first_choice_says_what_a_single_one_would(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    one, two = [
        (await client.post(url(engine, CHAT), json=chat(n=n))).json()["choices"] for n in (1, 2)
    ]

    assert one[0] == two[0]


async def test_a_stop_string_is_named_and_not_told(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    whole = (await client.post(url(engine, CHAT), json=chat())).json()
    text = whole["choices"][0]["message"]["content"]
    body = chat(stop=text[6:9])

    stopped = (await client.post(url(engine, CHAT), json=body)).json()["choices"][0]
    stream = await client.post(url(engine, CHAT), json=body | {"stream": True})

    events = sse_events(stream.text)
    assert stopped["message"]["content"] == text[: text.index(text[6:9])] == texts_of(events)[0]
    assert (stopped["finish_reason"], stopped["stop_reason"]) == ("stop", text[6:9])
    assert events[-1]["choices"][0]["stop_reason"] == text[6:9]


async def test_a_call_of_a_tool_is_the_same_streamed_or_not(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    body = chat(tools=[TOOL], tool_choice="required", max_tokens=50)

    whole = (await client.post(url(engine, CHAT), json=body)).json()["choices"][0]
    stream = await client.post(url(engine, CHAT), json=body | {"stream": True})

    call = whole["message"]["tool_calls"][0]
    assert whole["message"]["content"] is None
    assert whole["finish_reason"] == "tool_calls"
    assert call["function"] == {"name": "clock", "arguments": '{"zone":"the"}'}
    deltas = [event["choices"][0]["delta"] for event in sse_events(stream.text)]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["id"] == call["id"]
    assert [one["function"].get("name") for one in calls] == ["clock"] + [None] * (len(calls) - 1)
    assert "".join(one["function"]["arguments"] for one in calls) == '{"zone":"the"}'


@pytest.mark.parametrize("interval", [1, 3])
async def test_logprobs_have_an_entry_for_each_token(
    interval: int, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(stream_interval=interval)
    wish = {"logprobs": True, "top_logprobs": 2, "max_tokens": 5}

    whole = (await client.post(url(engine, CHAT), json=chat(**wish))).json()["choices"][0]
    stream = await client.post(url(engine, CHAT), json=chat(stream=True, **wish))
    plain = await client.post(url(engine, COMPLETIONS), json=completion(logprobs=2, max_tokens=5))

    told = whole["logprobs"]["content"]
    assert "".join(one["token"] for one in told) == whole["message"]["content"]
    choices = [event["choices"][0] for event in sse_events(stream.text)]
    streamed = [
        one for choice in choices if choice["logprobs"] for one in choice["logprobs"]["content"]
    ]
    assert streamed == told
    assert len(plain.json()["choices"][0]["logprobs"]["tokens"]) == 5


async def test_a_client_that_leaves_ends_all_choices(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(speed=1.0)
    body = completion(max_tokens=5000, n=4, stream=True)

    async with client.stream("POST", url(engine, COMPLETIONS), json=body) as answer:
        await anext(answer.aiter_bytes())

    page = ""
    while (
        'finished_reason="abort"' not in page
        or metric(page, "vllm:request_success_total", finished_reason="abort") < 4
    ):
        page = (await client.get(url(engine, "/metrics"))).text
    assert engine.model.running == 0


async def test_a_picture_is_tokens_of_its_own(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    def seen(data: str) -> dict[str, Any]:
        part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        content = [{"type": "text", "text": "What is it?"}, part]
        return {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 2}

    cached = []
    for data in ("AAAA", "AAAA", "BBBB"):
        usage = (await client.post(url(engine, CHAT), json=seen(data))).json()["usage"]
        assert usage["prompt_tokens"] > 256
        cached.append(usage["prompt_tokens_details"]["cached_tokens"])

    assert cached[1] > 256
    assert cached[2] < 64
