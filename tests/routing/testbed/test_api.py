"""The engine from outside: routes, ids, counters, caching, clients that leave."""

import asyncio

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
    url,
)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


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


async def test_unknown_routes_and_methods_are_refused(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    missing = await client.get(url(engine, "/nowhere"))
    wrong = await client.get(url(engine, CHAT))

    assert (missing.status_code, missing.json()) == (404, {"detail": "Not Found"})
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})


@pytest.mark.parametrize("cut", [1, 30, 59])
async def test_an_open_last_message_is_continued_to_the_same_text(
    start_engine: StartEngine, client: httpx.AsyncClient, cut: int
) -> None:
    engine = await start_engine()
    body = chat(max_tokens=60)
    whole = (await client.post(url(engine, CHAT), json=body)).json()["choices"][0]["message"]
    begun = whole["content"][: 4 * cut]
    messages = [*body["messages"], {"role": "assistant", "content": begun}]
    more = {"add_generation_prompt": False, "continue_final_message": True}

    rest = await client.post(
        url(engine, CHAT), json=body | more | {"messages": messages, "max_tokens": 60 - cut}
    )

    answer = rest.json()
    assert begun + answer["choices"][0]["message"]["content"] == whole["content"]
    assert answer["usage"]["completion_tokens"] == 60 - cut


async def test_an_open_last_message_excludes_a_generation_prompt(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, CHAT), json=chat(continue_final_message=True))

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "continue_final_message"
