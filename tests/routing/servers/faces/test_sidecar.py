"""The sidecar's port: what passes, what is refused, how it ends."""

import asyncio
import json
from typing import Any

import pytest

from routing.core.document import Limits
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import request
from tests.routing.servers.faces.pod import NAMED, Pod
from tests.routing.servers.scripted import (
    CHAT,
    MODEL,
    Engine,
    answer_body,
    chat,
    status_script,
)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, chat(stream=True)),
        ("/v1/embeddings", {"model": MODEL, "input": "x"}),
        ("/tokenize", {"model": MODEL, "prompt": "x"}),
    ],
)
async def test_others_pass_with_their_bytes(pod: Pod, path: str, body: dict[str, Any]) -> None:
    decode = await pod.engine("d")
    await pod.start()

    answer = await pod.ask(
        json.dumps(body, indent=3).encode(), path=path, authorization="Bearer engine-key", x_own="1"
    )

    assert answer.status == 200
    assert decode.requests == [body]
    got = decode.headers[0]
    assert (got[b"authorization"], got[b"x-own"]) == (b"Bearer engine-key", b"1")
    assert got[b"content-length"] == b"%d" % len(json.dumps(body, indent=3))


async def test_apis_without_legs_are_not_split(pod: Pod) -> None:
    prefill, decode = await pod.engine("p"), await pod.engine("d")
    await pod.start()

    answer = await pod.ask({"model": MODEL, "input": "x"}, path="/v1/embeddings", by=pod.at("p"))

    assert (answer.status, prefill.requests, len(decode.requests)) == (200, [], 1)


@pytest.mark.parametrize("given", ["10.9.9.9:8000", "127.0.0.1:22", "{p},10.9.9.9:8000"])
async def test_a_host_outside_the_list_is_403_and_nobody_is_asked(pod: Pod, given: str) -> None:
    prefill, decode = await pod.engine("p"), await pod.engine("d")
    await pod.start()

    answer = await pod.ask(chat(), by=given.format(p=pod.at("p")))

    assert answer.status == 403
    assert answer.json["error"]["code"] == "prefiller-not-allowed"
    assert prefill.requests + decode.requests == []


@pytest.mark.parametrize(
    "given", ["nonsense", "http://10.0.0.1:80", "10.0.0.1", ",".join("ab:1" * 20)]
)
async def test_a_header_that_cannot_be_read_is_400(pod: Pod, given: str) -> None:
    await pod.engine("d")
    await pod.start()

    answer = await pod.ask(chat(), by=given)

    assert (answer.status, answer.json["error"]["param"]) == (400, NAMED)


async def test_without_a_list_nothing_is_split(pod: Pod) -> None:
    await pod.engine("p")
    await pod.engine("d")
    await pod.start(prefillers=None)

    assert (await pod.ask(chat(), by=pod.at("p"))).status == 403
    assert (await pod.ask(chat())).status == 200


@pytest.mark.parametrize(
    "member", ["kv_transfer_params", "ec_transfer_params", "bootstrap_host", "bootstrap_room"]
)
@pytest.mark.parametrize("path", [CHAT, "/v1/audio/unknown"])
async def test_a_client_cannot_name_where_kv_comes_from(pod: Pod, member: str, path: str) -> None:
    decode = await pod.engine("d")
    await pod.start()

    answer = await pod.ask(chat(**{member: {"remote_host": "10.0.0.1"}}), path=path)

    assert (answer.status, answer.json["error"]["param"]) == (400, member)
    assert decode.requests == []


async def test_a_routers_own_decode_leg_passes_where_that_is_allowed(pod: Pod) -> None:
    decode = await pod.engine("d")
    await pod.engine("p")
    await pod.start(accepts_legs=True)
    leg = chat(kv_transfer_params={"do_remote_prefill": True, "remote_host": "p"})

    passed = await pod.ask(leg)
    both = await pod.ask(leg, by=pod.at("p"))

    assert (passed.status, decode.requests) == (200, [leg])
    assert (both.status, both.json["error"]["param"]) == (400, "kv_transfer_params")


@pytest.mark.parametrize(
    "path", ["/reset_prefix_cache", "/v1/load_lora_adapter", "/v1/files", "/sleep", "/v1/../sleep"]
)
async def test_what_manages_an_engine_is_not_passed(pod: Pod, path: str) -> None:
    decode = await pod.engine("d")
    await pod.start()

    assert (await pod.ask({}, path=path)).status == 404
    assert decode.requests == []


async def test_probes_and_scrapers_reach_the_engine(pod: Pod) -> None:
    decode = await pod.engine("d", status_script(200, b""))
    decode.reads_json = False
    await pod.start()

    health = await request(pod.port, "GET", "/health")
    metrics = await request(pod.port, "GET", "/metrics")
    await decode.stop()
    gone = await request(pod.port, "GET", "/health")

    assert (health.status, metrics.status, gone.status) == (200, 200, 503)
    assert b"vllm:num_requests_running" in metrics.body


async def test_a_running_request_ends_before_the_sidecar_does(pod: Pod) -> None:
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def waits(engine: Engine, received: HttpRequest, client: Connection) -> None:
        begun.set()
        await go_on.wait()
        client.respond(200, answer_body("d"))

    await pod.engine("d", waits)
    await pod.start(drain_seconds=5)

    asked = asyncio.create_task(pod.ask(chat()))
    await begun.wait()
    assert pod.sidecar is not None
    stopping = asyncio.create_task(pod.sidecar.stop())
    await asyncio.sleep(0)
    go_on.set()
    answer = await asked
    await stopping

    assert answer.status == 200


async def test_a_body_over_the_bound_is_413(pod: Pod) -> None:
    await pod.engine("d")
    await pod.start(limits=Limits(body_bytes=1000))

    assert (await pod.ask(b"x" * 1001)).status == 413
