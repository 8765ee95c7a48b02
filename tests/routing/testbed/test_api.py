"""The engine from outside: shapes of vLLM 0.32's captures, counters, errors, streams."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import (
    MODEL,
    chat,
    completion,
    metric,
    sample,
    shape,
    sse_events,
    url,
)

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


async def test_the_request_id_is_part_of_the_answer_id(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, CHAT), json=chat(), headers={"X-Request-Id": "abc-1"})

    assert answer.json()["id"] == "chatcmpl-abc-1"


async def test_a_second_equal_prompt_reports_cached_tokens(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    body = completion("x" * 4000)

    answers = [await client.post(url(engine, COMPLETIONS), json=body) for _ in range(2)]

    cached = [a.json()["usage"]["prompt_tokens_details"]["cached_tokens"] for a in answers]
    assert cached == [0, 992]


async def test_resetting_the_cache_makes_the_next_prompt_a_miss(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    body = completion("x" * 4000)
    await client.post(url(engine, COMPLETIONS), json=body)

    reset = await client.post(url(engine, "/reset_prefix_cache"))
    answer = await client.post(url(engine, COMPLETIONS), json=body)

    assert reset.status_code == 200
    assert answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


async def test_counters_equal_the_summed_usage(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    bodies = [completion(f"{n % 4}" * (400 + 40 * n), max_tokens=3 + n) for n in range(24)]

    answers = await asyncio.gather(
        *(client.post(url(engine, COMPLETIONS), json=body) for body in bodies)
    )

    usages = [answer.json()["usage"] for answer in answers]
    page = (await client.get(url(engine, "/metrics"))).text
    prompt = sum(usage["prompt_tokens"] for usage in usages)
    cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    assert metric(page, "vllm:prompt_tokens_total") == prompt
    assert metric(page, "vllm:prompt_tokens_by_source_total") == prompt
    assert metric(page, "vllm:prefix_cache_hits_total") == cached
    assert metric(page, "vllm:generation_tokens_total") == sum(
        usage["completion_tokens"] for usage in usages
    )
    assert metric(page, "vllm:request_success_total", finished_reason="length") == 24
    assert metric(page, "vllm:num_requests_running") == 0
    assert metric(page, "vllm:kv_cache_usage_perc") == 0


async def test_a_client_that_leaves_ends_its_request(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(speed=1.0)
    body = completion(max_tokens=5000, stream=True)

    async with client.stream("POST", url(engine, COMPLETIONS), json=body) as answer:
        await anext(answer.aiter_bytes())

    async with asyncio.timeout(10):
        while engine.model.stats.finished["abort"] == 0:
            await asyncio.sleep(0.01)
    assert engine.model.running == 0
    assert engine.model.pool.available == engine.model.pool.total


async def test_an_answer_ends_by_itself_when_it_is_allowed_to(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    body = completion(ignore_eos=False, max_tokens=None)

    answer = (await client.post(url(engine, COMPLETIONS), json=body)).json()

    assert answer["choices"][0]["finish_reason"] == "stop"
    assert 128 <= answer["usage"]["completion_tokens"] < 640


@pytest.mark.parametrize(
    ("path", "capture"),
    [
        ("/version", "version"),
        ("/load", "load"),
        ("/v1/models", "models"),
        ("/health", "health"),
    ],
)
async def test_small_routes_have_the_captured_shape(
    path: str, capture: str, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    captured = sample(capture)

    answer = await client.get(url(engine, path))

    assert answer.status_code == captured["status"]
    if "response" in captured:
        assert shape(answer.json()) == shape(captured["response"])
    else:
        assert answer.text == captured["response_text"]


async def test_tokens_can_be_asked_for_and_read_back(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    text = "def main(argv):"

    told = await client.post(url(engine, "/tokenize"), json={"model": MODEL, "prompt": text})
    back = await client.post(
        url(engine, "/detokenize"), json={"model": MODEL, "tokens": told.json()["tokens"]}
    )

    assert shape(told.json()) == shape(sample("tokenize_prompt")["response"])
    assert told.json()["count"] == 4
    assert back.json() == {"prompt": text}


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "param"),
    [
        (COMPLETIONS, {"model": "nope", "prompt": "x"}, 404, "NotFoundError", "model"),
        (CHAT, {"model": MODEL, "messages": "x"}, 400, "Bad Request", "body.messages"),
        (CHAT, {"model": MODEL, "messages": []}, 400, "BadRequestError", "messages"),
        (CHAT, {"model": MODEL}, 400, "Bad Request", "body.messages"),
        (CHAT, chat(max_tokens="8"), 400, "Bad Request", "body.max_tokens"),
        (CHAT, chat(max_tokens=True), 400, "Bad Request", "body.max_tokens"),
        (CHAT, chat(max_tokens=0), 400, "BadRequestError", "max_tokens"),
        (CHAT, chat(max_tokens=40_000), 400, "BadRequestError", "max_tokens"),
        (CHAT, chat(n=2), 400, "BadRequestError", "n"),
        (CHAT, chat(stream="yes"), 400, "Bad Request", "body.stream"),
        (COMPLETIONS, completion([300] * 40_000), 400, "BadRequestError", "input_tokens"),
        (COMPLETIONS, completion([-1]), 400, "Bad Request", "body.prompt"),
        (COMPLETIONS, completion(""), 400, "BadRequestError", "prompt"),
        (COMPLETIONS, completion(None), 400, "Bad Request", "body.prompt"),
        (
            COMPLETIONS,
            completion(kv_transfer_params={"do_remote_prefill": True}),
            400,
            "BadRequestError",
            "kv_transfer_params",
        ),
    ],
)
async def test_what_is_wrong_is_answered_in_vllms_form(
    path: str,
    body: dict[str, Any],
    status: int,
    kind: str,
    param: str,
    start_engine: StartEngine,
    client: httpx.AsyncClient,
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, path), json=body)

    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == (kind, param, status)
    assert shape(answer.json()) == shape(sample("err_unknown_model")["response"])


async def test_an_unknown_model_has_the_captured_sentence(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, COMPLETIONS), json={"model": "nope", "prompt": "x"})

    captured = sample("err_unknown_model")["response"]["error"]["message"]
    assert answer.json()["error"]["message"] == captured.replace("tiny", MODEL)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b""])
async def test_a_body_that_is_no_json_object_is_a_bad_request(
    body: bytes, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, CHAT), content=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "Bad Request"


async def test_unknown_routes_and_methods_are_refused(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    missing = await client.get(url(engine, "/nowhere"))
    wrong = await client.get(url(engine, CHAT))

    assert (missing.status_code, missing.json()) == (404, {"detail": "Not Found"})
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})
