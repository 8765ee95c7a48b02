"""What a stream does to the books: leases, usage, evictions, waits, whatever ends it and when."""

import json
from typing import Any

import pytest

from routing.servers.faces.ext_proc import stream as streams
from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.stream import Face
from tests.routing.servers.faces.ext_proc.gateway import (
    BUFFERED,
    FULL_DUPLEX,
    NONE,
    Gateway,
    destination,
    picked,
    request_body,
    request_headers,
    response_body,
    response_headers,
    set_headers,
    streamed,
)
from tests.routing.servers.scripted import SECRET, USAGE, Stage, answer_body, chat, event, key

BODY = json.dumps(chat()).encode()
STREAM = json.dumps(chat(stream=True)).encode()
SERVED = "x-gateway-destination-endpoint-served"


def refusal(gateway: Gateway) -> tuple[int, dict[str, str], dict[str, Any]]:
    told = gateway.got[-1].immediate_response
    return told.status.code, set_headers(told.headers), json.loads(told.body)["error"]


def names(stage: Stage) -> dict[str, str]:
    return {f"127.0.0.1:{engine.port}": name for name, engine in stage.engines.items()}


async def test_a_whole_answer_is_accounted_with_the_engines_counts(
    face: Face, stage: Stage
) -> None:
    gateway = picked(face, answer_mode=FULL_DUPLEX)
    body = answer_body("a")

    gateway.tell(response_headers(), response_body(body[:50], is_last=False))
    during = stage.leases_open
    gateway.tell(response_body(body[50:]))
    gateway.leave()

    (used,) = await stage.usage(1)
    assert (during, stage.leases_open) == (1, 0)
    assert (used["outcome"], used["status"], used["delivered"]) == ("ok", 200, True)
    assert (used["prompt_tokens"], used["cached_tokens"], used["completion_tokens"]) == (12, 11, 3)
    assert used["token_source"] == "engine"


@pytest.mark.parametrize("with_usage", [True, False])
async def test_a_stream_is_timed_and_counted_without_being_held(
    face: Face, stage: Stage, *, with_usage: bool
) -> None:
    gateway = picked(face, body=STREAM, answer_mode=FULL_DUPLEX)
    parts = [event({"role": "assistant", "content": ""})]
    parts += [event({"content": word}) for word in "abc"]
    if with_usage:
        details = {"prompt_tokens_details": {"cached_tokens": 11}}
        parts.append(event(None, usage=USAGE | details))
    whole = b"".join([*parts, b"data: [DONE]\n\n"])
    gateway.tell(response_headers(content_type="text/event-stream"))

    cuts = [whole[at : at + 100] for at in range(0, len(whole), 100)]
    answers = gateway.tell(*(response_body(cut, is_last=False) for cut in cuts), response_body(b""))

    assert streamed(answers, "response_body") == [*cuts, b""]
    (used,) = await stage.usage(1)
    assert used["ttft_seconds"] > 0
    assert used["outcome"] == "ok"
    if with_usage:
        assert (used["cached_tokens"], used["completion_tokens"]) == (11, 3)
        assert used["token_source"] == "engine"
    else:
        assert (used["cached_tokens"], used["completion_tokens"]) == (None, 4)
        assert used["token_source"] == "counted_by_router"


async def test_the_lease_goes_to_whoever_served(face: Face, stage: Stage) -> None:
    gateway = picked(face, answer_mode=FULL_DUPLEX)
    chosen = destination(gateway.got[-2]).split(",")[0]
    other = next(address for address in names(stage) if address != chosen)

    gateway.tell(
        response_headers(metadata={"envoy.lb": {SERVED: other}}), response_body(answer_body("b"))
    )

    (used,) = await stage.usage(1)
    assert used["endpoint"] == names(stage)[other]
    assert stage.leases_open == 0


async def test_an_endpoint_that_answers_500_is_blamed_and_one_that_answers_400_is_not(
    face: Face, stage: Stage
) -> None:
    for status in (500, 400):
        gateway = picked(face, answer_mode=FULL_DUPLEX)
        chosen = names(stage)[destination(gateway.got[-2]).split(",")[0]]
        gateway.tell(response_headers(status), response_body(b'{"error":{}}'))
        state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
        failures = {
            one["id"]: (one["breaker"] or {}).get("last_failure") for one in state["endpoints"]
        }
        if status == 500:
            bad = chosen
            assert failures[chosen] == "status"
        elif chosen != bad:
            assert failures[chosen] is None
    used = await stage.usage(2)
    assert [(one["outcome"], one["status"]) for one in used] == [("error", 500), ("error", 400)]


@pytest.mark.lesson("S02")
@pytest.mark.parametrize("mode", [FULL_DUPLEX, BUFFERED])
@pytest.mark.parametrize("steps", range(6))
async def test_a_stream_may_end_at_any_phase(
    face: Face, stage: Stage, mode: int, steps: int
) -> None:
    gateway = Gateway(face)
    messages = [
        request_headers(mode=mode, answer_mode=FULL_DUPLEX),
        request_body(STREAM),
        response_headers(content_type="text/event-stream"),
        response_body(event({"content": "a"}), is_last=False),
        response_body(b"data: [DONE]\n\n"),
    ]

    gateway.tell(*messages[:steps])
    gateway.leave()
    gateway.leave()

    assert gateway.status == 0
    assert face.held_bytes == 0
    # After the request and before its answer nobody knows what becomes of it. An answer whose body
    # was to be shown, and was not, has not reached its client.
    is_held = steps == 2 and mode == FULL_DUPLEX
    assert len(face.picks) == is_held
    assert stage.leases_open == is_held
    outcomes = {2: ["ok"], 3: ["aborted"], 4: ["aborted"], 5: ["ok"]}.get(steps, [])
    outcomes = [] if is_held else outcomes
    found = [one["outcome"] for one in await stage.usage(len(outcomes))]
    assert found == outcomes


@pytest.mark.parametrize("body", [[], [response_body(b'{"error"', is_last=False)]])
async def test_an_error_has_ended_whether_its_body_came_or_not(
    face: Face, stage: Stage, body: list[ProcessingRequest]
) -> None:
    gateway = picked(face, answer_mode=FULL_DUPLEX)

    gateway.tell(response_headers(500), *body)
    gateway.leave()

    (used,) = await stage.usage(1)
    assert (used["outcome"], used["status"]) == ("error", 500)


async def test_without_an_answer_phase_the_pick_is_held(face: Face, stage: Stage) -> None:
    gateway = picked(face, mode=FULL_DUPLEX, answer_mode=NONE)

    gateway.leave()

    assert (len(face.picks), stage.leases_open) == (1, 1)


@pytest.mark.parametrize(
    ("told", "status", "code"),
    [
        pytest.param({"secret": ""}, 401, "missing_api_key", id="no-key"),
        pytest.param({"secret": "wrong"}, 401, "invalid_api_key", id="wrong-key"),
        pytest.param({"path": "/nowhere"}, 404, 404, id="unknown-path"),
        pytest.param({"method": "PUT"}, 405, 405, id="method"),
        pytest.param({"content-encoding": "gzip"}, 415, 415, id="compressed"),
        pytest.param({"path": "/\x00"}, 404, 404, id="odd-path"),
        pytest.param({"path": ""}, 400, 400, id="no-path"),
        pytest.param({"x-consort-priority": "9"}, 403, 403, id="priority-above-the-keys"),
    ],
)
async def test_refusals_are_those_of_our_own_port(
    face: Face, stage: Stage, told: dict[str, str], status: int, code: str | int
) -> None:
    before = stage.router.state.requests.total
    gateway = picked(face, x_request_id="mine", **told)

    found, headers, error = refusal(gateway)

    assert (found, error["code"]) == (status, code)
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == "mine"
    assert "x-llm-d-request-dropped-reason" not in headers
    assert gateway.status == 0
    assert stage.leases_open == 0
    assert stage.router.state.requests.total == before + 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (json.dumps({"messages": []}).encode(), 400),
        (json.dumps(chat(model="nobody")).encode(), 404),
        (json.dumps(chat(kv_transfer_params={})).encode(), 400),
        (b"\xff\xfe", 400),
    ],
)
async def test_bodies_that_cannot_be_read(face: Face, body: bytes, status: int) -> None:
    assert refusal(picked(face, body=body))[0] == status


async def test_an_error_has_the_form_of_its_api(face: Face) -> None:
    gateway = picked(face, body=b"{", path="/v1/messages")

    assert json.loads(gateway.got[-1].immediate_response.body)["type"] == "error"


async def test_a_body_over_the_limit_is_refused_while_it_comes(face: Face, stage: Stage) -> None:
    await stage.load(version=2, limits={"body_bytes": 1000})
    gateway = Gateway(face)

    gateway.tell(request_headers(), request_body(b"x" * 900, is_last=False))
    assert gateway.got == []
    gateway.tell(request_body(b"x" * 200, is_last=False))

    assert refusal(gateway)[0] == 413
    assert (gateway.status, face.held_bytes) == (0, 0)
    # What was on its way is passed over.
    assert gateway.tell(request_body(b"x")) == []


async def test_strangers_cannot_send_large_bodies(face: Face) -> None:
    gateway = Gateway(face)

    gateway.tell(request_headers(secret="wrong"), request_body(b"x" * 70_000, is_last=False))

    assert refusal(gateway)[0] == 401


async def test_all_bodies_together_are_bounded(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_HELD_BYTES", 1000)
    first, second = Gateway(face), Gateway(face)
    first.tell(request_headers(), request_body(b"x" * 900, is_last=False))

    second.tell(request_headers(), request_body(b"x" * 900, is_last=False))

    assert refusal(second)[0] == 503
    first.leave()
    assert face.held_bytes == 0


@pytest.mark.parametrize(
    ("changes", "told", "status", "reason"),
    [
        ({"endpoints": []}, {}, 503, "rejected-no-endpoints"),
        ({"limits": {"concurrent_requests": 1}}, {}, 429, "rejected-saturated"),
        ({}, {"metadata": {"x": 1}}, 503, "rejected-no-endpoints"),
    ],
    ids=["pool-empty", "full", "subset-without-match"],
)
async def test_refusals_say_why_the_request_was_dropped(
    face: Face,
    stage: Stage,
    changes: dict[str, Any],
    told: dict[str, Any],
    status: int,
    reason: str,
) -> None:
    await stage.load(version=2, **changes)
    if told:
        hint = {"x-gateway-destination-endpoint-subset": ["10.0.0.1:1"]}
        told = {"metadata": {"envoy.lb.subset_hint": hint}}
    if "limits" in changes:
        picked(face)
    gateway = picked(face, **told)

    found, headers, _ = refusal(gateway)

    assert (found, headers["x-llm-d-request-dropped-reason"]) == (status, reason)


async def test_a_draining_router_refuses(face: Face, stage: Stage) -> None:
    stage.router.state.is_draining = True

    found, headers, _ = refusal(picked(face))

    assert found == 503
    assert headers["x-llm-d-request-dropped-reason"] == "rejected-shutting-down"


async def test_a_request_with_an_unknown_failure_is_our_fault(
    face: Face, stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pool = stage.router.state.directory.pools["main"]
    monkeypatch.setattr(pool, "endpoints", {})

    gateway = picked(face)

    assert refusal(gateway)[0] == 500
    assert "failed" in caplog.text
    assert gateway.status == 0


async def test_keys_of_other_tenants_have_their_own_books(face: Face, stage: Stage) -> None:
    await stage.load(version=2, keys=[key("ana", SECRET), key("ben", "sk-ben")])
    for secret in (SECRET, "sk-ben"):
        gateway = picked(face, secret=secret, answer_mode=FULL_DUPLEX)
        gateway.tell(response_headers(), response_body(answer_body("a")))

    used = await stage.usage(2)

    assert [one["tenant"] for one in used] == ["tenant-ana", "tenant-ben"]


async def test_headers_of_strangers_count_as_held_until_they_are_gone(face: Face) -> None:
    gateways = [Gateway(face) for _ in range(3)]
    for gateway in gateways:
        gateway.tell(request_headers(secret="", x_long="v" * 10_000))
    assert face.held_bytes > 30_000
    # A gateway may go on to an answer of its own.
    gateways[0].tell(response_headers())
    assert face.held_bytes > 30_000
    for gateway in gateways:
        gateway.leave()

    assert face.held_bytes == 0


async def test_more_headers_than_a_request_may_have_are_refused(face: Face) -> None:
    gateway = Gateway(face)
    gateway.tell(request_headers(x_long="v" * 2**20))

    assert (refusal(gateway)[0], gateway.status, face.held_bytes) == (431, 0, 0)
