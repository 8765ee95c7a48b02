"""Embeddings of the engine: vectors, forms, counts, bounds."""

import base64
import math
from array import array
from typing import Any

import httpx
import pytest

from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, metric, url

PATH = "/v1/embeddings"


def body(given: Any, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "input": given} | more


async def test_equal_inputs_have_equal_vectors_of_length_one(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = (await client.post(url(engine, PATH), json=body(["a", "b", "a"]))).json()

    first, second, third = (one["embedding"] for one in answer["data"])
    assert first == third != second
    assert math.hypot(*first) == pytest.approx(1.0)
    assert [one["index"] for one in answer["data"]] == [0, 1, 2]
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] == 3


async def test_base64_holds_the_same_numbers(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    plain, packed = [
        (await client.post(url(engine, PATH), json=body("a", encoding_format=form))).json()
        for form in ("float", "base64")
    ]

    numbers = array("f", base64.b64decode(packed["data"][0]["embedding"]))
    assert list(numbers) == pytest.approx(plain["data"][0]["embedding"], abs=1e-6)


async def test_nothing_is_decoded_and_the_prompt_is_cached(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()
    for _ in range(2):
        await client.post(url(engine, PATH), json=body("x" * 4000))

    page = (await client.get(url(engine, "/metrics"))).text

    assert metric(page, "vllm:generation_tokens_total") == 0
    assert metric(page, "vllm:prompt_tokens_total") == 2000
    assert metric(page, "vllm:prefix_cache_hits_total") > 900
    assert engine.model.pool.available == engine.model.pool.total


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (None, {}),
        ([], {}),
        (5, {}),
        (["x"] * 2049, {}),
        ("x", {"dimensions": 0}),
        ("x", {"dimensions": 5000}),
        ("x", {"encoding_format": "hex"}),
        ([300] * 40_000, {}),
        ([["x"]], {}),
    ],
)
async def test_what_cannot_be_read_is_refused(
    given: Any, more: dict[str, Any], start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    assert (await client.post(url(engine, PATH), json=body(given, **more))).status_code == 400


@pytest.mark.parametrize(("given", "count"), [([1, 2, 3], 1), ([[1, 2], [3]], 2)])
async def test_token_ids_are_taken(
    given: Any, count: int, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, PATH), json=body(given, dimensions=8))

    assert [len(one["embedding"]) for one in answer.json()["data"]] == [8] * count
    assert answer.json()["usage"]["prompt_tokens"] == 3
