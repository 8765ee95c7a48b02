"""Completions of an engine: adapters, pairs of several choices, KV that does not come."""

import httpx
import pytest

from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, chat, completion, sample, shape, url

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


async def test_an_adapter_is_a_model_of_its_own(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(adapters=("tuned",))

    models = (await client.get(url(engine, "/v1/models"))).json()["data"]
    tuned = await client.post(url(engine, CHAT), json=chat(model="tuned"))
    nobody = await client.post(url(engine, CHAT), json=chat(model="other"))

    assert [(model["id"], model["parent"]) for model in models] == [(MODEL, None), ("tuned", MODEL)]
    assert tuned.json()["model"] == "tuned"
    assert nobody.status_code == 404


async def test_prompts_of_two_adapters_share_no_block(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(adapters=("tuned",))
    names = (MODEL, "tuned", "tuned")

    answers = [
        await client.post(url(engine, COMPLETIONS), json=completion("x" * 4000, model=name))
        for name in names
    ]

    cached = [one.json()["usage"]["prompt_tokens_details"]["cached_tokens"] for one in answers]
    assert cached == [0, 0, 992]


async def test_a_prefill_leg_computes_one_choice_and_keeps_its_blocks(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(role="prefill")
    body = chat(n=3, max_tokens=1, kv_transfer_params={"do_remote_decode": True})

    answer = (await client.post(url(engine, CHAT), json=body)).json()

    assert len(answer["choices"]) == 1
    assert len(engine.model.held) == 1
    legs = sample("nixl-completions")
    captured = (legs[0] if isinstance(legs, list) else legs)["prefill"]["response"]
    assert shape(answer["kv_transfer_params"]) == shape(captured["kv_transfer_params"])


@pytest.mark.parametrize("stream", [False, True])
async def test_kv_that_does_not_come_ends_all_choices(
    stream: bool, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(role="decode", kv_load_failure_policy="fail")
    ticket = {
        "do_remote_prefill": True,
        "remote_engine_id": "gone",
        "remote_request_id": "gone",
        "remote_host": "127.0.0.1",
        "remote_port": 1,
        "remote_block_ids": [[0]],
    }
    body = chat(n=2, max_tokens=5000, kv_transfer_params=ticket, stream=stream)

    try:
        status: int | None = (await client.post(url(engine, CHAT), json=body)).status_code
    except httpx.RemoteProtocolError:
        # The other choice had begun to speak: half an answer must not look like a whole one.
        status = None

    assert status in ((None, 500) if stream else (500,))
    while engine.model.running:
        await client.get(url(engine, "/health"))
    assert engine.model.pool.available == engine.model.pool.total
