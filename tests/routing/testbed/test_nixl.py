"""Both legs of NIXL prefill/decode between two engines, and what happens when P is gone."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from routing.testbed.engine import Engine
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import (
    chat,
    completion,
    metric,
    sample,
    shape,
    sse_events,
    url,
)

PREFILL_LEG = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
COMPLETIONS = "/v1/completions"
LONG = "x" * 8000


async def prefill(client: httpx.AsyncClient, engine: Engine, body: dict[str, Any]) -> Any:
    """Run the prefill leg of a body; its whole answer."""
    leg = body | {"max_tokens": 1, "kv_transfer_params": PREFILL_LEG}
    answer = await client.post(
        url(engine, COMPLETIONS), json=leg, headers={"X-Request-Id": "pd-18eca09efe325546"}
    )
    assert answer.status_code == 200
    return answer.json()


async def test_both_legs_have_the_captured_shape(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p = await start_engine(role="prefill", prompt_tokens_details=False)
    d = await start_engine(role="decode", engine_id="d", prompt_tokens_details=False)
    body = completion(list(range(1000)), return_token_ids=True)

    first = await prefill(client, p, body)
    second = await client.post(
        url(d, COMPLETIONS), json=body | {"kv_transfer_params": first["kv_transfer_params"]}
    )

    captured = sample("nixl-completions")
    assert shape(first) == shape(captured["prefill"]["response"])
    assert shape(second.json()) == shape(captured["decode"]["response"])
    request_id = first["kv_transfer_params"]["remote_request_id"]
    assert request_id.startswith("cmpl-pd-18eca09efe325546-0-")
    assert second.json()["choices"][0]["token_ids"][:1] == first["choices"][0]["token_ids"]


async def test_the_decode_engine_pulls_the_prompt_and_the_blocks_of_p_are_freed(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p, d = await start_engine(role="prefill"), await start_engine(role="decode", engine_id="d")
    body = completion(LONG)
    first = await prefill(client, p, body)
    held = p.model.pool.used_share

    leg = body | {"kv_transfer_params": first["kv_transfer_params"]}
    answer = await client.post(url(d, COMPLETIONS), json=leg)

    page = (await client.get(url(d, "/metrics"))).text
    size = 2000 * 163_840
    assert answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 2000
    assert metric(page, "vllm:prompt_tokens_total") == 2000
    by_source = "vllm:prompt_tokens_by_source_total"
    assert metric(page, by_source, source="external_kv_transfer") == 2000
    assert metric(page, "vllm:nixl_bytes_transferred_sum") == size
    expected = (0.002 + size / (10e9 / 3)) / 100
    assert metric(page, "vllm:nixl_xfer_time_seconds_sum") == pytest.approx(expected)
    assert held > 0
    assert p.model.pool.used_share == 0
    assert d.model.pool.used_share == 0


async def test_what_the_decode_engine_has_already_is_not_transferred(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p, d = await start_engine(role="prefill"), await start_engine(role="decode", engine_id="d")
    await client.post(url(d, COMPLETIONS), json=completion("x" * 4032))
    body = completion(LONG)
    first = await prefill(client, p, body)

    leg = body | {"kv_transfer_params": first["kv_transfer_params"]}
    await client.post(url(d, COMPLETIONS), json=leg)

    page = (await client.get(url(d, "/metrics"))).text
    by_source = "vllm:prompt_tokens_by_source_total"
    assert metric(page, by_source, source="external_kv_transfer") == 992
    assert metric(page, by_source, source="local_cache_hit") == 1008


async def test_a_chat_is_decoded_as_a_stream(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p, d = await start_engine(role="prefill"), await start_engine(role="decode", engine_id="d")
    body = chat("w1 " * 400)
    path = "/v1/chat/completions"
    leg = body | {"max_tokens": 1, "kv_transfer_params": PREFILL_LEG}
    first = (await client.post(url(p, path), json=leg)).json()

    more = {"kv_transfer_params": first["kv_transfer_params"], "stream": True}
    answer = await client.post(url(d, path), json=body | more)

    texts = [e["choices"][0]["delta"]["content"] for e in sse_events(answer.text)]
    assert texts[1] == first["choices"][0]["message"]["content"]
    assert len(texts) == 1 + 8


@pytest.mark.parametrize("broken", ["p is gone", "p is another life", "hold expired"])
async def test_a_prompt_that_cannot_be_pulled_is_computed_locally(
    broken: str, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p = await start_engine(role="prefill", kv_hold_seconds=0.05)
    d = await start_engine(role="decode", engine_id="d")
    body = completion(LONG)
    params = (await prefill(client, p, body))["kv_transfer_params"]
    if broken == "p is gone":
        await p.stop(grace_seconds=0.0)
    elif broken == "p is another life":
        params["remote_engine_id"] = "earlier"
    else:
        await until(lambda: p.model.stats.expired_holds == 1)

    answer = await client.post(url(d, COMPLETIONS), json=body | {"kv_transfer_params": params})

    page = (await client.get(url(d, "/metrics"))).text
    assert answer.status_code == 200
    assert metric(page, "vllm:nixl_num_failed_transfers_total") == 1
    by_source = "vllm:prompt_tokens_by_source_total"
    assert metric(page, by_source, source="local_compute") == 2000


async def test_with_the_policy_fail_a_lost_prompt_is_a_server_error(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p = await start_engine(role="prefill")
    d = await start_engine(role="decode", engine_id="d", kv_load_failure_policy="fail")
    body = completion(LONG)
    params = (await prefill(client, p, body))["kv_transfer_params"]
    await p.stop(grace_seconds=0.0)

    answer = await client.post(url(d, COMPLETIONS), json=body | {"kv_transfer_params": params})

    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "InternalServerError"
    assert d.model.pool.available == d.model.pool.total


async def test_a_hold_that_nobody_pulls_expires_and_is_counted(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    p = await start_engine(role="prefill", kv_hold_seconds=0.05)
    await prefill(client, p, completion(LONG))

    await until(lambda: p.model.stats.expired_holds == 1)

    page = (await client.get(url(p, "/metrics"))).text
    assert metric(page, "vllm:nixl_num_kv_expired_reqs_total") == 1
    assert p.model.pool.available == p.model.pool.total


@pytest.mark.parametrize("role", ["decode", "prefill"])
async def test_an_engine_plays_only_the_part_of_its_role(
    role: str, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(role=role)
    wrong = PREFILL_LEG if role == "decode" else {"do_remote_prefill": True, "remote_port": 1}
    body = completion(LONG, max_tokens=1, kv_transfer_params=wrong)

    answer = await client.post(url(engine, COMPLETIONS), json=body)

    assert answer.status_code == 200
    assert answer.json()["kv_transfer_params"] is None
    assert engine.model.pool.available == engine.model.pool.total


async def until(condition: Any) -> None:
    """Wait for a condition, at most ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
