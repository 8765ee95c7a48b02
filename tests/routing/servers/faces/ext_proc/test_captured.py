"""Exchanges with llm-d's endpoint picker, repeated with ours: the same where the protocol asks.

`llmd-epp-probe.jsonl` was captured from llm-d Router 0.10.0 with eight endpoints: a case a line,
what its client sent and what the picker answered. `DIFFERENCES` names everything in which ours
differs; docs/faces.md has the same table for people.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.json_format import MessageToDict

from routing.core.document import PoolDocument
from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.picks import Picks
from tests.routing.servers.faces.ext_proc.gateway import (
    DESTINATION,
    Gateway,
    destination,
    kinds,
    mutation_of,
    request_body,
    request_headers,
    set_headers,
    streamed,
)
from tests.routing.servers.scripted import Engine, Stage, answers, document

CASES: dict[str, dict[str, Any]] = {
    told["case"]: told
    for told in map(
        json.loads, (Path(__file__).parent / "llmd-epp-probe.jsonl").read_text().splitlines()
    )
}
HELLO = '{"model": "consort/tiny", "messages": [{"role": "user", "content": "hello"}]}'
BODIES = {
    "embeddings": '{"model":"consort/tiny","input":"hello"}',
    "responses": '{"model":"consort/tiny","input":"hello"}',
    "messages": '{"max_tokens":8,"messages":[{"content":"hi","role":"user"}]'
    ',"model":"consort/tiny"}',
    "bad-json": '{"model": ',
    "no-model": '{"messages": [{"role": "user", "content": "hello"}]}',
    "empty-messages": '{"model": "consort/tiny", "messages": []}',
    "unknown-path": HELLO,
}
PATHS = {
    "get-models": "/v1/models",
    "unknown-path": "/v1/frobnicate",
    "embeddings": "/v1/embeddings",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "completions-token-ids": "/v1/completions",
}
HEADERS = {
    "model-rewrite-header": {"x-llm-d-model-name-rewrite": "other/model"},
    "objective-and-fairness": {
        "x-llm-d-inference-objective": "gold",
        "x-llm-d-inference-fairness-id": "team",
    },
    "conditional-decode": {"prefer": "if-available"},
}
SUBSET = "x-gateway-destination-endpoint-subset"
SUBSETS = {"subset-1": ["127.0.1.3:9203"], "subset-unknown": ["10.9.9.9:1"]}
CHUNKS = {"body-150k-chunked-16k": 16_384, "body-12M-chunked-64k": 65_536}

DIFFERENCES = {
    "key": "A request needs a key; llm-d's picker knows no tenants.",
    "body": "The body's bytes pass as they came; llm-d sorts keys, escapes and rounds numbers.",
    "content-length": "Told when the body changed; llm-d tells it always.",
    "repeated": "Headers of the request are not told again.",
    "request-id": "The id for the engine is unlike any other; llm-d keeps the client's.",
    "decision-id": "The decision has a name, for access logs.",
    "list": "Second-best endpoints follow the first.",
    "errors": "Refusals are JSON in the form of the API, with their type; llm-d's are plain text.",
    "unknown-path": "A path that is not served is 404; llm-d says 400.",
    "empty-messages": "An empty list of messages is refused by the engine; llm-d does it itself.",
    "message-size": "One message may have 64 MiB; llm-d's 4 MiB.",
    "conditional-decode": "The word for routers does not reach the engine; llm-d repeats it.",
}


def body_of(case: str) -> bytes:
    told = CASES[case]
    if "in" in told:
        return str(told["in"]).encode()
    if case.startswith("body-"):
        size = told["body_bytes_in_out"][0] if "body_bytes_in_out" in told else 4_500_088
        words = "x" * (size - len(HELLO) + len("hello"))
        return HELLO.replace("hello", words).encode()
    return BODIES.get(case, HELLO).encode()


def messages_of(case: str) -> list[ProcessingRequest]:
    metadata = {"envoy.lb.subset_hint": {SUBSET: SUBSETS[case]}} if case in SUBSETS else None
    is_get = case == "get-models"
    length = {} if is_get else {"content-length": str(len(body_of(case)))}
    head = request_headers(
        method="GET" if is_get else "POST",
        path=PATHS.get(case, "/v1/chat/completions"),
        is_last=is_get,
        metadata=metadata,
        content_type="application/json",
        x_request_id=f"p-{case}",
        **length,
        **HEADERS.get(case, {}),
    )
    if is_get:
        return [head]
    body = body_of(case)
    step = CHUNKS.get(case, len(body))
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    return [
        head,
        *(request_body(piece, is_last=False) for piece in pieces[:-1]),
        request_body(pieces[-1]),
    ]


@pytest.fixture
async def captured_pool(stage: Stage) -> Face:
    """The eight endpoints of the capture; nobody answers there."""
    engines = [Engine(f"e{number}", answers, port=1) for number in range(1, 9)]
    fields = msgspec.to_builtins(document(engines))
    for number, endpoint in enumerate(fields["endpoints"], start=1):
        endpoint["url"] = f"http://127.0.1.{number}:920{number}"
    fields["models"] = [
        {"name": name, "max_model_len": 10_000_000} for name in ("consort/tiny", "other/model")
    ]
    await stage.push(msgspec.json.encode(msgspec.convert(fields, PoolDocument)))
    return Face(Picks(stage.router.state))


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "set_headers" in CASES[case]],
)
async def test_a_captured_pick_is_made_in_the_same_way(captured_pool: Face, case: str) -> None:
    told, gateway = CASES[case], Gateway(captured_pool)
    endpoints = {f"127.0.1.{number}:920{number}" for number in range(1, 9)}

    got = gateway.tell(*messages_of(case))

    # Parts in the same order and number, the body in pieces of the same size.
    count, _, names = told["msgs"].partition(": ")
    assert len(got) == int(count)
    assert ",".join(dict.fromkeys(kinds(got))) == names
    # The destination, twice; with DIFFERENCES["list"].
    chosen = destination(got[0]).split(",")
    assert set(chosen) <= endpoints
    assert set(told["dynamic_metadata"]["envoy.lb"]) == set(
        MessageToDict(got[0].dynamic_metadata)["envoy.lb"]
    )
    if case in SUBSETS:
        assert chosen == [told["set_headers"][DESTINATION]]
    assert got[0].request_headers.response.clear_route_cache == told["clear_route_cache"]
    _check_headers(case, set_headers(mutation_of(got[0])))
    _check_body(case, b"".join(streamed(got)) if len(got) > 1 else None)


def _check_headers(case: str, ours: dict[str, str]) -> None:
    theirs = {name.lower() for name in CASES[case]["set_headers"]}
    is_changed = case == "model-rewrite-header"
    without = {":method", ":path", "content-type", "prefer"}  # "repeated", "conditional-decode"
    without |= set() if is_changed else {"content-length"}
    more = {"x-consort-decision-id", "x-request-id"}
    assert set(ours) == (theirs - without) | more
    assert ours["x-request-id"].startswith(f"p-{case}.")


def _check_body(case: str, got: bytes | None) -> None:
    sent = None if case == "get-models" else body_of(case)
    if sent is not None and "body_bytes_in_out" in CASES[case]:
        assert len(sent) == CASES[case]["body_bytes_in_out"][0]
    if case == "model-rewrite-header":
        assert got == body_of(case).replace(b"consort/tiny", b"other/model")
        assert json.loads(got) == json.loads(CASES[case]["out"])
    else:
        assert got == sent


@pytest.mark.parametrize(
    "case", [case for case in CASES if "immediate" in CASES[case] and case != "empty-messages"]
)
async def test_a_captured_refusal_has_the_same_status(captured_pool: Face, case: str) -> None:
    (answer,) = Gateway(captured_pool).tell(*messages_of(case))

    refusal = answer.immediate_response
    expected = 404 if case == "unknown-path" else CASES[case]["immediate"]["status"]
    assert refusal.status.code == expected
    assert set_headers(refusal.headers)["content-type"] == "application/json"
    assert json.loads(refusal.body)["error"]["message"]


async def test_an_empty_list_of_messages_goes_to_an_engine(captured_pool: Face) -> None:
    got = Gateway(captured_pool).tell(*messages_of("empty-messages"))

    assert kinds(got) == ["request_headers", "request_body"]


async def test_a_message_over_four_megabytes_passes(captured_pool: Face) -> None:
    assert "RESOURCE_EXHAUSTED" in CASES["body-4.5M-one-message"]["grpc_error"]

    got = Gateway(captured_pool).tell(*messages_of("body-4.5M-one-message"))

    assert b"".join(streamed(got)) == body_of("body-4.5M-one-message")


async def test_without_a_key_nothing_is_picked(captured_pool: Face) -> None:
    (answer,) = Gateway(captured_pool).tell(
        request_headers(secret=""), request_body(HELLO.encode())
    )

    assert answer.immediate_response.status.code == 401


def test_every_case_is_looked_at_and_every_difference_is_told_to_people() -> None:
    page = (Path(__file__).parents[5] / "docs/faces.md").read_text()

    assert len(CASES) == 20
    assert [text for text in DIFFERENCES.values() if text not in page] == []
