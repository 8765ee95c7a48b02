"""Each inference API through the proxy: answer unchanged, metered, errors in its own form."""

import json
from typing import Any

import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import request
from tests.routing.servers.scripted import (
    MODEL,
    SECRET,
    Engine,
    Stage,
    answers,
    key,
    status_script,
)

EMBEDDINGS, MESSAGES, RESPONSES = "/v1/embeddings", "/v1/messages", "/v1/responses"
TURNS = [{"role": "user", "content": "Say hello."}]
BODIES: dict[str, dict[str, Any]] = {
    MESSAGES: {"model": MODEL, "max_tokens": 9, "messages": TURNS},
    RESPONSES: {"model": MODEL, "max_output_tokens": 9, "input": "Say hello."},
    EMBEDDINGS: {"model": MODEL, "input": ["Say hello."]},
}
WHOLE: dict[str, dict[str, Any]] = {
    MESSAGES: {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "hello"}],
        "usage": {"input_tokens": 12, "output_tokens": 3, "cache_read_input_tokens": None},
    },
    RESPONSES: {
        "id": "resp_1",
        "object": "response",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "hello"}]}],
        "usage": {
            "input_tokens": 12,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    },
    EMBEDDINGS: {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
        "usage": {"prompt_tokens": 12, "total_tokens": 12},
    },
}
_BEGUN = {"id": "msg-1", "usage": {"input_tokens": 12, "output_tokens": 0}}
STREAMS: dict[str, list[dict[str, Any]]] = {
    MESSAGES: [
        {"type": "message_start", "message": _BEGUN},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hel"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 'lo "usage": {'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ],
    RESPONSES: [
        {"type": "response.created", "response": {"usage": None}},
        {"type": "response.output_text.delta", "delta": "hello"},
        {"type": "response.completed", "response": WHOLE[RESPONSES]},
    ],
}


async def speaks(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """An engine that answers in the form of the API it is asked."""
    if not json.loads(received.body).get("stream"):
        client.respond(200, json.dumps(WHOLE[received.path]).encode())
        return
    client.open_stream(200, content_type=b"text/event-stream")
    client.send(stream_of(received.path))
    client.close_stream()


def stream_of(path: str, events: int = 99) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in STREAMS[path][:events]
    )


@pytest.mark.parametrize("path", BODIES)
async def test_a_whole_answer_passes_unchanged_and_is_metered(stage: Stage, path: str) -> None:
    await stage.engine("a", speaks)
    await stage.load()

    answer = await stage.ask(BODIES[path], path=path)

    assert answer.status == 200
    assert answer.json == WHOLE[path]
    event = (await stage.usage(1))[0]
    output = 0 if path == EMBEDDINGS else 3
    assert (event["prompt_tokens"], event["completion_tokens"]) == (12, output)
    assert event["token_source"] == "engine"
    assert event["cached_tokens"] == (8 if path == RESPONSES else None)
    assert stage.engines["a"].requests == [BODIES[path]]


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_passes_unchanged_and_is_metered(stage: Stage, path: str) -> None:
    await stage.engine("a", speaks)
    await stage.load()
    body = BODIES[path] | {"stream": True}

    answer = await stage.ask(body, path=path)

    assert answer.body == stream_of(path)
    event = (await stage.usage(1))[0]
    assert (event["prompt_tokens"], event["completion_tokens"]) == (12, 3)
    assert event["token_source"] == "engine"
    # Only chat and completions know `stream_options`.
    assert stage.engines["a"].requests == [body]


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_that_breaks_ends_in_an_error_of_its_own_form(
    stage: Stage, path: str
) -> None:
    async def breaks(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/event-stream")
        client.send(stream_of(path, 2))
        client.abort()

    await stage.engine("a", breaks)
    await stage.load()

    answer = await stage.ask(BODIES[path] | {"stream": True}, path=path)

    last = answer.events[-1]
    assert last.startswith("event: error\ndata: ")
    told = json.loads(last.partition("data: ")[2])
    assert told["type"] == "error"
    assert "interrupted" in json.dumps(told)
    event = (await stage.usage(1))[0]
    assert (event["outcome"], event["token_source"]) == ("error", "counted_by_router")


@pytest.mark.parametrize(
    ("status", "changes", "kind"),
    [
        (404, {"model": "nobody"}, "not_found_error"),
        (400, {"messages": 5}, "invalid_request_error"),
    ],
)
async def test_errors_over_messages_have_anthropics_form(
    stage: Stage, status: int, changes: dict[str, Any], kind: str
) -> None:
    await stage.engine("a", speaks)
    await stage.load()

    answer = await stage.ask(BODIES[MESSAGES] | changes, path=MESSAGES)

    assert answer.status == status
    assert answer.json["type"] == "error"
    assert answer.json["error"]["type"] == kind
    assert answer.json["error"]["message"]


async def test_no_capacity_and_a_wrong_key_have_anthropics_form_too(stage: Stage) -> None:
    await stage.load()

    nobody = await stage.ask(BODIES[MESSAGES], path=MESSAGES)
    stranger = await stage.ask(BODIES[MESSAGES], path=MESSAGES, secret="wrong")

    assert (nobody.status, nobody.json["error"]["type"]) == (503, "overloaded_error")
    assert (stranger.status, stranger.json["error"]["type"]) == (401, "authentication_error")


async def test_an_engines_own_error_passes_unchanged(stage: Stage) -> None:
    said = b'{"type":"error","error":{"type":"invalid_request_error","message":"scripted"}}'
    await stage.engine("a", status_script(400, said))
    await stage.load()

    answer = await stage.ask(BODIES[MESSAGES], path=MESSAGES)

    assert (answer.status, answer.body) == (400, said)


async def test_a_key_may_come_in_anthropics_header(stage: Stage) -> None:
    await stage.engine("a", speaks)
    await stage.load()

    answer = await request(
        stage.router.port, "POST", MESSAGES, BODIES[MESSAGES], headers={"x-api-key": SECRET}
    )

    assert answer.status == 200
    assert b"x-api-key" not in stage.engines["a"].headers[0]


@pytest.mark.parametrize("path", [MESSAGES, EMBEDDINGS])
async def test_apis_without_legs_are_never_split_over_a_pair(stage: Stage, path: str) -> None:
    await stage.engine("p", status_script(500))
    await stage.engine("d", speaks)
    await stage.load(
        roles={"p": "prefill", "d": "decode"}, disaggregation={"minimum_uncached_tokens": 0}
    )
    long = {"messages": [{"role": "user", "content": "x" * 50_000}]}
    body = BODIES[path] | (long if path == MESSAGES else {"input": "x" * 50_000})

    answer = await stage.ask(body, path=path)

    assert answer.status == 200
    assert stage.engines["p"].requests == []


@pytest.mark.parametrize("more", [{"n": 2}, {"prompt": ["x" * 50_000, "y"]}])
async def test_several_answers_are_never_split_over_a_pair(
    stage: Stage, more: dict[str, Any]
) -> None:
    """What a prefill engine hands over is one prompt, and it can be fetched once."""
    await stage.engine("p", status_script(500))
    await stage.engine("d", answers)
    await stage.load(roles={"p": "prefill", "d": "decode"})
    body = {"model": MODEL, "prompt": "x" * 50_000} | more

    answer = await stage.ask(body, path="/v1/completions")

    assert (answer.status, stage.engines["p"].requests) == (200, [])
    assert stage.engines["d"].requests == [body]


@pytest.mark.lesson("X10")
@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "s1"), ({"cache_salt": None}, "s1"), ({"cache_salt": "mine"}, "2:s1mine")],
)
async def test_a_tenants_salt_reaches_the_engine_with_the_clients_own(
    stage: Stage, given: dict[str, Any], expected: str
) -> None:
    await stage.engine("a", answers)
    await stage.load(tenants=[{"tenant": "tenant-ana", "cache_salt": "s1"}])
    body = {"model": MODEL, "messages": TURNS, "user": "kept"} | given

    answer = await stage.ask(body)

    assert answer.status == 200
    assert stage.engines["a"].requests == [body | {"cache_salt": expected}]


@pytest.mark.lesson("X10")
async def test_salted_tenants_share_no_prefix_in_the_index(stage: Stage) -> None:
    await stage.engine("a", answers)
    await stage.load(
        keys=[key("ana", SECRET, may_test=True), key("ben", "sk-ben", may_test=True)],
        tenants=[
            {"tenant": "tenant-ana", "cache_salt": "s1"},
            {"tenant": "tenant-ben", "cache_salt": "s2"},
        ],
    )
    body = {"model": MODEL, "messages": [{"role": "user", "content": "x" * 5000}]}
    question = {"path": "/v1/chat/completions", "body": body}
    await stage.ask(body)
    await stage.no_leases()

    found = [
        await stage.ask(question, path="/v1/explain", secret=secret)
        for secret in (SECRET, "sk-ben")
    ]

    hits = [answer.json["candidates"][0]["hit_tokens"] for answer in found]
    assert hits[0] > 1000
    assert hits[1] == 0
