"""Headers that a request carries to its engine."""

import json
from typing import Any

import msgspec
import pytest

from routing.servers.errors import ApiError
from routing.servers.faces import carrying
from routing.servers.faces.picks import Picks
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.scripted import CHAT, SECRET, Stage, chat, document
from tests.routing.servers.test_bootstrap import LONG

HEADERS = {b"authorization": b"Bearer " + SECRET.encode()}


async def lines(stage: Stage, **body: Any) -> dict[str, bytes]:
    raw = json.dumps(chat(**body)).encode()
    request = HttpRequest(method="POST", path=CHAT, query="", headers=HEADERS, body=raw)
    picks = Picks(stage.router.state)
    call = picks.read(request)
    return carrying.request_lines(await picks.open(call), call)


async def test_a_plain_pick_names_destination_request_and_decision(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()

    told = await lines(stage)

    assert set(told) == {
        "x-gateway-destination-endpoint",
        "x-request-id",
        "x-consort-decision-id",
    }
    assert told["x-gateway-destination-endpoint"] == b"127.0.0.1:%d" % engine.port


async def test_a_pair_names_who_computes_the_prompt(stage: Stage) -> None:
    prefill, decode = await stage.engine("p"), await stage.engine("d")
    await stage.load(roles={"p": "prefill", "d": "decode"})

    told = await lines(stage, messages=LONG)

    assert told["x-gateway-destination-endpoint"] == b"127.0.0.1:%d" % decode.port
    assert told["x-prefiller-host-port"] == b"127.0.0.1:%d" % prefill.port


async def test_a_rank_behind_a_shared_address_is_named(stage: Stage) -> None:
    await stage.engine("a")
    told = document(list(stage.engines.values()))
    raw = json.loads(msgspec.json.encode(told))
    raw["endpoints"][0]["data_parallel_rank"] = 3
    await stage.push(json.dumps(raw).encode())

    assert (await lines(stage))["x-data-parallel-rank"] == b"3"


async def test_a_host_name_cannot_be_carried(stage: Stage) -> None:
    await stage.engine("a")
    raw = json.loads(msgspec.json.encode(document(list(stage.engines.values()))))
    raw["endpoints"][0]["url"] = "http://engine.example:8000"
    await stage.push(json.dumps(raw).encode())

    with pytest.raises(ApiError) as refused:
        await lines(stage)

    assert refused.value.code == "address-not-numeric"
