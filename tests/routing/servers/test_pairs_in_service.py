"""Which pairs are used: transfers that fail or last, ranks, revisions."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.scripted import (
    Engine,
    Stage,
    answers,
    chat,
    document,
    hangs,
    status_script,
)

ROLES = {"p1": "prefill", "p2": "prefill", "d1": "decode", "d2": "decode"}


LONG = [{"role": "user", "content": "A long prompt. " * 2000}]


TICKET = {"do_remote_prefill": True, "remote_prefill_cached_tokens": 5, "remote_host": "p"}


async def load_pair(stage: Stage, *names: str) -> None:
    await stage.load(roles={name: ROLES[name] for name in names})


@pytest.mark.lesson("F11", "F02")
async def test_a_decode_leg_that_fails_after_a_good_prefill_blames_the_pair(
    stage: Stage,
) -> None:
    await stage.engine("p1")
    bad, good = await stage.engine("d1", status_script(500)), await stage.engine("d2")
    await load_pair(stage, "p1", "d1", "d2")

    statuses = [(await stage.ask(chat(messages=LONG))).status for _ in range(2)]

    assert statuses == [200, 200]
    assert bad.requests
    assert len(good.requests) == 2
    state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
    ends = {one["id"]: one["breaker"]["last_failure"] for one in state["endpoints"]}
    pairs = {one["decode"]: one["breaker"]["last_failure"] for one in state["pairs"]}
    assert ends == {"p1": None, "d1": None, "d2": None}
    assert pairs == {"d1": "kv_transfer", "d2": None}


@pytest.mark.lesson("F05")
async def test_a_decode_engine_that_waits_for_kv_too_long_is_left(stage: Stage) -> None:
    await stage.engine("p1")
    stuck, _ = await stage.engine("d1", hangs), await stage.engine("d2")
    limits = {"first_token_timeout_seconds": 0.5, "stall_timeout_seconds": 0.5}
    await stage.load(roles={name: ROLES[name] for name in ("p1", "d1", "d2")}, limits=limits)

    statuses = [(await stage.ask(chat(messages=LONG, stream=True))).status for _ in range(2)]

    assert statuses == [200, 200]
    async with asyncio.timeout(5):
        await stuck.gone.wait()


@pytest.mark.lesson("F05")
async def test_the_time_for_a_transfer_is_its_own(stage: Stage) -> None:
    await stage.engine("p1")
    stuck, _ = await stage.engine("d1", hangs), await stage.engine("d2")
    rules = {"warm_up": False, "transfer_timeout_seconds": 0.3}
    roles = {name: ROLES[name] for name in ("p1", "d1", "d2")}
    await stage.load(roles=roles, disaggregation=rules)

    statuses = [(await stage.ask(chat(messages=LONG, stream=True))).status for _ in range(2)]

    assert statuses == [200, 200]
    async with asyncio.timeout(5):
        await stuck.gone.wait()
    state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
    ends = {one["id"]: one["breaker"]["last_failure"] for one in state["endpoints"]}
    assert ends == {"p1": None, "d1": None, "d2": None}


@pytest.mark.lesson("F11")
async def test_a_pair_that_fails_on_every_request_is_left_out_of_choice(stage: Stage) -> None:
    await stage.engine("p1")

    async def cannot_pull(engine: Engine, received: HttpRequest, client: Connection) -> None:
        if b"kv_transfer_params" in received.body:
            client.respond(500, b'{"error":{"message":"transport"}}')
        else:
            await answers(engine, received, client)

    mixed, good = await stage.engine("d1", cannot_pull), await stage.engine("d2")
    await load_pair(stage, "p1", "d1", "d2")

    statuses = [(await stage.ask(chat(messages=LONG))).status for _ in range(12)]

    assert set(statuses) == {200}
    pulls = [body for body in mixed.requests if "kv_transfer_params" in body]
    assert len(pulls) == 2
    assert len(good.requests) >= 2
    # Its own work goes on: the pair is out, the endpoint is not.
    assert len(mixed.requests) > len(pulls)


@pytest.mark.lesson("F10")
async def test_each_leg_names_its_own_rank(stage: Stage) -> None:
    prefill, decode = await stage.engine("p1"), await stage.engine("d1")
    pool: dict[str, Any] = msgspec.to_builtins(
        document([prefill, decode], roles={"p1": "prefill", "d1": "decode"})
    )
    for rank, endpoint in enumerate(pool["endpoints"], start=2):
        endpoint["data_parallel_rank"] = rank
    assert (await stage.push(json.dumps(pool).encode())).status == 200

    await stage.ask(chat(messages=LONG))

    assert prefill.headers[0][b"x-data-parallel-rank"] == b"2"
    assert decode.headers[0][b"x-data-parallel-rank"] == b"3"


async def test_a_pair_never_crosses_revisions(stage: Stage) -> None:
    engines = [await stage.engine(name) for name in ("p1", "p2", "d1", "d2")]
    pool: dict[str, Any] = msgspec.to_builtins(document(engines, roles=ROLES))
    for endpoint in pool["endpoints"]:
        revision = "r1" if endpoint["id"].endswith("1") else "r2"
        endpoint["kv_contract"]["model_revision"] = revision
    assert (await stage.push(json.dumps(pool).encode())).status == 200

    for _ in range(8):
        await stage.ask(chat(messages=LONG))

    pairs = {(one["prefill_endpoint"], one["endpoint"]) for one in await stage.usage(8)}
    assert pairs == {("p1", "d1"), ("p2", "d2")}
