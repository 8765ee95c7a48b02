"""Orders of messages, one transcript each; every destination is told twice."""

import itertools
import json
from typing import Any

import pytest

from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.picks import Picks
from tests.routing.servers.faces.ext_proc.gateway import (
    BUFFERED,
    DESTINATION,
    FULL_DUPLEX,
    NONE,
    STREAMED,
    Gateway,
    destination,
    ends,
    kinds,
    mutation_of,
    picked,
    request_body,
    request_headers,
    request_trailers,
    response_body,
    response_headers,
    response_trailers,
    set_headers,
    streamed,
)
from tests.routing.servers.scripted import MODEL, Stage, chat

BODY = json.dumps(chat()).encode()
LONG = json.dumps(chat(messages=[{"role": "user", "content": "word " * 40_000}])).encode()
SERVED = "x-gateway-destination-endpoint-served"


def addresses(stage: Stage) -> set[str]:
    return {f"127.0.0.1:{engine.port}" for engine in stage.engines.values()}


def first(destinations: str) -> str:
    return destinations.split(",")[0]


@pytest.mark.lesson("B03")
@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED, None])
async def test_headers_only_are_answered_with_the_pick(
    face: Face, stage: Stage, mode: int | None
) -> None:
    gateway = Gateway(face)

    answers = gateway.tell(
        request_headers(method="GET", path="/v1/models", mode=mode, is_last=True)
    )

    assert kinds(answers) == ["request_headers"]
    assert first(destination(answers[0])) in addresses(stage)
    assert answers[0].request_headers.response.clear_route_cache


@pytest.mark.lesson("B04")
async def test_full_duplex_answers_nothing_before_the_last_piece(face: Face, stage: Stage) -> None:
    gateway = Gateway(face)
    cuts = (0, 10, 70_000, 70_000, len(LONG))

    early = gateway.tell(
        request_headers(),
        *(request_body(LONG[start:end], is_last=False) for start, end in itertools.pairwise(cuts)),
    )
    answers = gateway.tell(request_body(b""))

    assert early == []
    assert kinds(answers) == ["request_headers", *["request_body"] * (len(answers) - 1)]
    assert first(destination(answers[0])) in addresses(stage)
    assert answers[0].request_headers.response.clear_route_cache
    pieces = streamed(answers)
    assert b"".join(pieces) == LONG
    assert max(map(len, pieces)) <= 62_000
    assert ends(answers)


@pytest.mark.lesson("B01")
async def test_with_trailers_no_piece_ends_the_body_and_the_trailers_come_last(face: Face) -> None:
    gateway = Gateway(face)

    early = gateway.tell(request_headers(), request_body(BODY, is_last=False))
    answers = gateway.tell(request_trailers())

    assert early == []
    assert kinds(answers) == ["request_headers", "request_body", "request_trailers"]
    assert streamed(answers) == [BODY]
    assert not ends(answers)


async def test_an_empty_body_is_refused_as_on_our_own_port(face: Face) -> None:
    gateway = Gateway(face)

    (answer,) = gateway.tell(request_headers(), request_body(b""))

    assert answer.immediate_response.status.code == 400
    assert gateway.status == 0


async def test_an_empty_body_of_a_request_that_needs_none_goes_back_as_one_empty_piece(
    face: Face, stage: Stage
) -> None:
    await stage.load(version=2, limits={"unknown_paths": "pass"})
    gateway = Gateway(face)

    answers = gateway.tell(request_headers(path="/v1/extra"), request_body(b""))

    assert kinds(answers) == ["request_headers", "request_body"]
    assert streamed(answers) == [b""]
    assert ends(answers)


@pytest.mark.parametrize("mode", [BUFFERED, None])
async def test_buffered_headers_are_answered_at_once_and_the_pick_with_the_body(
    face: Face, stage: Stage, mode: int | None
) -> None:
    gateway = Gateway(face)

    early = gateway.tell(request_headers(mode=mode))
    answers = gateway.tell(request_body(LONG))

    assert kinds(early) == ["request_headers"]
    assert early[0].request_headers.response.ByteSize() == 0
    assert kinds(answers) == ["request_body"]
    assert first(destination(answers[0])) in addresses(stage)
    assert not answers[0].request_body.response.HasField("body_mutation")
    assert answers[0].request_body.response.clear_route_cache


async def test_buffered_with_trailers(face: Face) -> None:
    gateway = Gateway(face)

    gateway.tell(request_headers(mode=BUFFERED))
    with_body = gateway.tell(request_body(BODY, is_last=False))
    answers = gateway.tell(request_trailers())

    assert kinds(with_body) == ["request_body"]
    assert kinds(answers) == ["request_trailers"]


@pytest.mark.parametrize("mode", [NONE, STREAMED, 3, 5])
async def test_a_gateway_that_does_not_send_whole_bodies_is_told_what_to_set(
    face: Face, mode: int
) -> None:
    (answer,) = Gateway(face).tell(request_headers(mode=mode))

    refusal = json.loads(answer.immediate_response.body)["error"]
    assert answer.immediate_response.status.code == 500
    assert refusal["code"] == "body-mode"
    assert "request_body_mode" in refusal["message"]


@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED])
async def test_a_body_keeps_its_bytes_and_its_length(face: Face, mode: int) -> None:
    odd = b'{ "seed": 9007199254740993, "x":1e2, "dup":1,"dup":2, "model": "%b",' % MODEL.encode()
    odd += b'\n "messages":[{"role":"user","content":"a<b>&c \\u00e9"}] }'

    answers = picked(face, body=odd, mode=mode, content_length=str(len(odd))).got

    told = mutation_of(answers[-2] if mode == FULL_DUPLEX else answers[-1])
    assert "content-length" not in set_headers(told)
    assert "content-length" not in told.remove_headers
    if mode == FULL_DUPLEX:
        assert b"".join(streamed(answers)) == odd


@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED])
@pytest.mark.parametrize("header", ["x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite"])
async def test_a_rewritten_name_changes_the_length_and_comes_back_in_the_answer(
    face: Face, stage: Stage, mode: int, header: str
) -> None:
    models = [{"name": name, "max_model_len": 9000} for name in (MODEL, "other/model")]
    await stage.load(version=2, models=models)
    more = {header: "other/model", "content-length": str(len(BODY))}
    gateway = picked(face, mode=mode, answer_mode=BUFFERED, **more)

    sent = gateway.got[-1].request_body.response.body_mutation
    body = b"".join(streamed(gateway.got)) if mode == FULL_DUPLEX else sent.body
    (head,) = gateway.tell(response_headers(content_length="30"))
    (answer,) = gateway.tell(response_body(b'{"id":"1","model":"other/model"}'))

    assert body == BODY.replace(MODEL.encode(), b"other/model")
    told = mutation_of(gateway.got[-4 if mode == FULL_DUPLEX else -3])
    assert set_headers(told)["content-length"] == str(len(body))
    assert header in told.remove_headers
    assert head.response_headers.response.header_mutation.remove_headers == ["content-length"]
    changed = answer.response_body.response.body_mutation.body
    assert json.loads(changed) == {"id": "1", "model": MODEL}


@pytest.mark.parametrize("as_text", [False, True])
async def test_control_headers_and_the_key_do_not_reach_the_engine(
    face: Face, *, as_text: bool
) -> None:
    given = {
        "x-api-key": "k",
        "X-LLM-D-SLO-TTFT-MS": "500",
        "x-slo-tpot-ms": "50",
        "x-gateway-inference-objective": "o",
        "x-gateway-destination-endpoint": "10.0.0.1:22",
        "x-gateway-destination-endpoint-subset": "10.0.0.1",
        "x-prefiller-host-port": "10.0.0.1:22",
        "x-consort-priority": "0",
        "prefer": "return=minimal",
        "transfer-encoding": "chunked",
        "x-session-id": "s",
    }
    told = mutation_of(picked(face, as_text=as_text, **given).got[-2])

    removed = set(told.remove_headers)
    assert removed == {name.lower() for name in given} - {
        DESTINATION,
        "transfer-encoding",
        "x-session-id",
    } | {"authorization"}
    assert "transfer-encoding" not in set_headers(told)
    assert first(set_headers(told)[DESTINATION]).startswith("127.0.0.1:")


@pytest.mark.parametrize("given", [{}, {"x-request-id": "mine"}])
async def test_an_engine_gets_an_id_that_no_other_request_has(
    face: Face, given: dict[str, Any]
) -> None:
    told = [set_headers(mutation_of(picked(face, **given).got[-2])) for _ in range(2)]

    assert told[0]["x-request-id"] != told[1]["x-request-id"]
    assert all(one["x-request-id"].startswith(given.get("x-request-id", "")) for one in told)


async def test_destinations_are_listed_in_order_of_preference(face: Face, stage: Stage) -> None:
    listed = destination(picked(face).got[-2]).split(",")

    assert len(listed) == 2
    assert set(listed) == addresses(stage)


async def test_scores_are_told_where_they_are_wanted(picks: Picks, stage: Stage) -> None:
    await stage.load(version=2, policy={"name": "consort"})

    told = picked(Face(picks, tells_scores=True)).got[-2].dynamic_metadata["envoy.lb"]
    without = picked(Face(picks)).got[-2].dynamic_metadata["envoy.lb"]

    scores = dict(told["x-gateway-destination-endpoint-scores"])
    assert set(scores) == addresses(stage)
    assert max(scores.values()) == scores[first(told[DESTINATION])] == 1.0
    assert min(scores.values()) > 0
    assert "x-gateway-destination-endpoint-scores" not in without


@pytest.mark.parametrize("mode", [STREAMED, BUFFERED, FULL_DUPLEX])
async def test_an_answer_passes_unchanged_with_our_headers(
    face: Face, stage: Stage, mode: int
) -> None:
    gateway = picked(face, answer_mode=mode)
    (head,) = gateway.tell(response_headers(metadata={"envoy.lb": {SERVED: "127.0.0.1:1"}}))
    first_part = gateway.tell(response_body(b'{"a":', is_last=False))
    second_part = gateway.tell(response_body(b"1}"))

    told = set_headers(head.response_headers.response.header_mutation)
    assert told["x-consort-decision-id"]
    assert told["x-consort-jurisdiction"] == "kr"
    if mode == FULL_DUPLEX:
        assert streamed(first_part + second_part, "response_body") == [b'{"a":', b"1}"]
        assert ends(second_part, "response_body")
    else:
        assert [part.response_body.response.ByteSize() for part in first_part + second_part] == [
            0,
            0,
        ]
    gateway.leave()
    assert stage.leases_open == 0


async def test_trailers_of_an_answer_end_it(face: Face, stage: Stage) -> None:
    gateway = picked(face, answer_mode=FULL_DUPLEX)
    gateway.tell(response_headers(), response_body(b"{}", is_last=False))

    (answer,) = gateway.tell(response_trailers())

    assert kinds([answer]) == ["response_trailers"]
    assert stage.leases_open == 0


async def test_an_answer_of_headers_alone_ends_with_them(face: Face, stage: Stage) -> None:
    picked(face).tell(response_headers(204, is_last=True))

    assert stage.leases_open == 0


@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED])
async def test_an_answer_of_the_gateway_itself_may_come_before_the_body_ends(
    face: Face, stage: Stage, mode: int
) -> None:
    gateway = Gateway(face)
    gateway.tell(request_headers(mode=mode, answer_mode=FULL_DUPLEX))
    if mode == FULL_DUPLEX:
        gateway.tell(request_body(b"{", is_last=False))

    answers = gateway.tell(response_headers(408), response_body(b"slow"))

    assert kinds(answers) == ["response_headers", "response_body"]
    assert streamed(answers, "response_body") == [b"slow"]
    gateway.leave()
    assert (gateway.status, stage.leases_open) == (0, 0)


ORDERS = {
    "body-first": [request_body(BODY)],
    "answer-first": [response_headers()],
    "headers-twice": [request_headers(), request_headers()],
    "headers-twice-buffered": [request_headers(mode=BUFFERED), request_headers(mode=BUFFERED)],
    "body-after-its-end": [request_headers(), request_body(BODY), request_body(BODY)],
    "trailers-after-the-end": [request_headers(), request_body(BODY), request_trailers()],
    "body-of-a-get": [
        request_headers(method="GET", path="/v1/models", is_last=True),
        request_body(b"{}"),
    ],
    "answer-body-before-its-headers": [
        request_headers(),
        request_body(BODY),
        response_body(b"{}"),
    ],
    "answer-headers-twice": [
        request_headers(),
        request_body(BODY),
        response_headers(),
        response_headers(),
    ],
    "request-body-in-the-answer": [
        request_headers(),
        request_body(BODY),
        response_headers(),
        request_body(BODY),
    ],
    "after-the-answer": [
        request_headers(answer_mode=FULL_DUPLEX),
        request_body(BODY),
        response_headers(),
        response_body(b"{}"),
        response_body(b"{}"),
    ],
    "nothing-in-it": [request_headers(), type(request_headers())()],
}


@pytest.mark.parametrize("messages", ORDERS.values(), ids=ORDERS)
async def test_a_message_out_of_order_ends_the_stream(
    face: Face, stage: Stage, messages: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        gateway = Gateway(face)
        gateway.tell(*messages)

        assert gateway.status == 3
        assert gateway.why
    # A held pick of a GET ends by itself.
    open_picks = len(face.picks)
    assert stage.leases_open == open_picks
    assert face.wrong_orders == 2
    assert len(caplog.records) == 1


async def test_bytes_that_are_no_message_end_the_stream(face: Face) -> None:
    gateway = Gateway(face)

    gateway.stream.taken(b"\xff\xff\xff")

    assert gateway.status == 3
