"""Unknown paths: refused, or passed to any ready endpoint where the pool allows it."""

from typing import Any

import pytest

from routing.servers import passing
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import request
from tests.routing.servers.scripted import MODEL, SECRET, Engine, Stage, answers, key, stream

PASS = {"unknown_paths": "pass"}
AUTHORIZED = {"authorization": f"Bearer {SECRET}"}


async def tells(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Says what it was asked, in a form of its own."""
    kind = received.headers.get(b"content-type", b"-")
    said = b" ".join(
        (received.method.encode(), received.path.encode(), received.query.encode(), kind)
    )
    client.respond(200, said + b" " + received.body, content_type=b"text/x-odd")


async def ready(stage: Stage, **changes: Any) -> Engine:
    engine = await stage.engine("a", tells)
    engine.reads_json = False
    await stage.load(limits=PASS, **changes)
    return engine


async def test_a_path_is_refused_where_the_pool_says_nothing(stage: Stage) -> None:
    await stage.engine("a", tells)
    await stage.load()

    answer = await stage.ask({"model": MODEL, "prompt": "x"}, path="/tokenize")

    assert answer.status == 404
    assert "/v1/responses" in answer.json["error"]["message"]
    assert stage.engines["a"].requests == []


async def test_path_query_method_and_type_reach_an_engine_unchanged(stage: Stage) -> None:
    await ready(stage)

    answer = await request(
        stage.router.port,
        "POST",
        "/v1/audio/transcriptions?language=ko",
        b"--x\r\n\x00binary",
        headers=AUTHORIZED | {"content-type": "multipart/form-data; boundary=x"},
    )

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/x-odd"
    said = b"POST /v1/audio/transcriptions language=ko multipart/form-data; boundary=x "
    assert answer.body == said + b"--x\r\n\x00binary"
    assert answer.headers["x-consort-decision-id"]


async def test_tokens_are_counted_by_an_engine(stage: Stage) -> None:
    await ready(stage)

    answer = await stage.ask({"model": MODEL, "prompt": "x"}, path="/tokenize")

    assert answer.body.startswith(b"POST /tokenize")
    await stage.no_leases()
    assert (await stage.usage(1))[0]["outcome"] == "ok"


async def test_a_get_has_no_body_and_goes_to_any_endpoint(stage: Stage) -> None:
    await ready(stage)

    answer = await request(stage.router.port, "GET", "/version", headers=AUTHORIZED)

    assert answer.body.startswith(b"GET /version")


async def test_a_stream_of_an_unknown_path_is_relayed(stage: Stage) -> None:
    await stage.engine("a", stream)
    await stage.load(limits=PASS)

    answer = await stage.ask({"model": MODEL, "stream": True}, path="/v1/odd")

    assert answer.events[-1] == "data: [DONE]"


@pytest.mark.parametrize(
    "path",
    [
        "/reset_prefix_cache",
        "/sleep",
        "/metrics",
        "/server_info",
        "/v1/load_lora_adapter",
        "/v1/unload_lora_adapter",
        "/v1/../sleep",
        "/v1/%2e%2e/sleep",
        "/v1//sleep",
        "//v1/x",
        "/v1/responses/resp_1",
        "/v1/responses/resp_1/cancel",
        "/v1/files/file-1",
        "/v1/batches",
        "/",
        "/v1/",
    ],
)
async def test_what_manages_an_engine_or_lies_stored_there_is_never_passed(
    stage: Stage, path: str
) -> None:
    await ready(stage)

    answer = await stage.ask({"model": MODEL}, path=path)

    assert answer.status == 404
    assert not passing.is_open(path)
    assert stage.engines["a"].requests == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "nobody"}, 404),
        ({"model": 5}, 400),
        ({"model": MODEL, "kv_transfer_params": {}}, 400),
        (b'{"model"', 400),
        (b"\xff\xff", 200),
        ({"prompt": "no model"}, 200),
    ],
)
async def test_bodies_are_judged_by_what_concerns_the_router(
    stage: Stage, body: Any, status: int
) -> None:
    await ready(stage)

    assert (await stage.ask(body, path="/tokenize")).status == status


async def test_a_key_for_some_models_names_one(stage: Stage) -> None:
    await ready(stage, keys=[key("ana", SECRET, models=[MODEL])])

    assert (await stage.ask({"prompt": "x"}, path="/tokenize")).status == 400
    assert (await stage.ask({"model": MODEL}, path="/tokenize")).status == 200


async def test_compressed_bodies_and_odd_methods_are_refused(stage: Stage) -> None:
    await ready(stage)

    zipped = await stage.ask(b"\x1f\x8b", path="/tokenize", content_encoding="gzip")
    patched = await request(
        stage.router.port, "PATCH", "/v1/odd", {"model": MODEL}, headers=AUTHORIZED
    )
    stranger = await request(stage.router.port, "GET", "/version")

    assert (zipped.status, patched.status, stranger.status) == (415, 405, 401)


async def test_known_paths_are_served_as_ever(stage: Stage) -> None:
    await stage.engine("a", answers)
    await stage.load(limits=PASS)

    assert (await stage.ask({"model": MODEL, "messages": []})).status == 200


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be", "utf-8-sig"])
async def test_json_that_only_an_engine_could_read_is_refused(stage: Stage, encoding: str) -> None:
    """With it went members past the router that let an engine fetch KV from any address."""
    engine = await ready(stage)
    body = '{"model":"m","kv_transfer_params":{"remote_host":"x"}}'.encode(encoding)

    answer = await stage.ask(body, path="/v1/rerank")

    assert answer.status == 400
    assert engine.requests == []
