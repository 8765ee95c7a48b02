"""Requests of somebody else's gateway: looked at, priced, compared, never answered or billed."""

import json
from typing import Any

import pytest

from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.picks import Picks
from tests.routing.servers.faces.ext_proc.gateway import (
    NONE,
    STREAMED,
    Gateway,
    request_body,
    request_headers,
    response_body,
    response_headers,
    response_trailers,
)
from tests.routing.servers.scripted import USAGE, Stage, answer_body, chat, event

BODY = json.dumps(chat(stream=True)).encode()
SERVED = "x-gateway-destination-endpoint-served"
DESTINATION = "x-gateway-destination-endpoint"
EVENTS = [event({"content": "a"}), event(None, usage=USAGE), b"data: [DONE]\n\n"]


@pytest.fixture
async def observer(stage: Stage) -> Face:
    for name in "ab":
        await stage.engine(name)
    recording = {"sample_rate": 1.0, "shadow_policies": ["random"]}
    await stage.load(policy={"name": "consort"}, recording=recording)
    stage.router.state.directory.observe()
    return Face(Picks(stage.router.state), observes=True)


def address(stage: Stage, name: str) -> str:
    return f"127.0.0.1:{stage.engines[name].port}"


def messages(stage: Stage, name: str = "a", *, by_header: bool = False, **told: Any) -> list[Any]:
    headers = {DESTINATION: f"{address(stage, name)},10.0.0.1:1"} if by_header else {}
    metadata = None if by_header else {"envoy.lb": {SERVED: address(stage, name)}}
    head = {"mode": STREAMED, "answer_mode": STREAMED, "observes": True, "secret": ""} | told
    return [
        request_headers(**head, **headers),
        request_body(BODY[:20], is_last=False),
        request_body(BODY[20:]),
        response_headers(content_type="text/event-stream", metadata=metadata),
        *(response_body(part, is_last=False) for part in EVENTS),
        response_body(b""),
    ]


async def told(stage: Stage) -> Any:
    return (await stage.admin("GET", "/admin/decisions?after=0")).json


@pytest.mark.parametrize("by_header", [True, False])
async def test_what_each_policy_would_have_done_is_counted_and_nothing_is_answered(
    observer: Face, stage: Stage, *, by_header: bool
) -> None:
    for _ in range(5):
        gateway = Gateway(observer)
        assert gateway.tell(*messages(stage, by_header=by_header)) == []
        gateway.leave()
        assert gateway.status == 0

    page = await told(stage)
    assert page["policies"] == {"main": "gateway"}
    assert set(page["shadow"]["main"]) == {"consort", "random"}
    for sums in page["shadow"]["main"].values():
        assert (sums["asked"], sums["priced"]) == (5, 5)
    chosen = [line for line in page["decisions"] if "outcome_of" not in line]
    assert {(line["policy"], line["destination"]) for line in chosen} == {("gateway", "a")}
    (outcome,) = [line for line in page["decisions"] if line.get("outcome_of") == chosen[0]["id"]]
    assert outcome["outcome"]["outcome"] == "ok"
    assert outcome["outcome"]["completion_tokens"] == 3
    assert outcome["outcome"]["ttft_seconds"] >= 0
    assert (stage.leases_open, observer.held_bytes) == (0, 0)


async def test_nothing_of_it_is_usage_of_this_router(observer: Face, stage: Stage) -> None:
    Gateway(observer).tell(*messages(stage))

    usage = await stage.admin("GET", "/admin/usage-segments?after=0&limit=100")

    assert usage.json["segments"] == []
    assert stage.router.state.requests.total == 0


async def test_load_of_the_gateway_counts_while_it_lasts(observer: Face, stage: Stage) -> None:
    gateway = Gateway(observer)
    gateway.tell(*messages(stage)[:5])
    during = stage.leases_open
    gateway.leave()

    assert (during, stage.leases_open) == (1, 0)


async def test_a_body_that_is_not_shown_ends_with_its_stream(observer: Face, stage: Stage) -> None:
    gateway = Gateway(observer)
    gateway.tell(*messages(stage, answer_mode=NONE)[:4])
    gateway.leave()

    assert stage.leases_open == 0


async def test_a_recorded_choice_can_be_explained_and_replayed(
    observer: Face, stage: Stage
) -> None:
    Gateway(observer).tell(*messages(stage))
    (line,) = [line for line in (await told(stage))["decisions"] if "outcome_of" not in line]

    shown = await stage.admin("GET", f"/admin/decisions/{line['id']}")

    assert shown.status == 200
    assert shown.json["explanation"]


@pytest.mark.parametrize(
    ("changed", "result"),
    [
        ({"path": "/v1/models"}, "unreadable"),
        ({"path": ""}, "unreadable"),
        ({"name": "nobody"}, "unknown-endpoint"),
    ],
)
async def test_what_cannot_be_compared_is_counted(
    observer: Face, stage: Stage, changed: dict[str, str], result: str
) -> None:
    if "name" in changed:
        parts = messages(stage)
        parts[3] = response_headers(metadata={"envoy.lb": {SERVED: "10.0.0.1:1"}})
    else:
        parts = messages(stage, **changed)
    gateway = Gateway(observer)
    gateway.tell(*parts, response_trailers())
    gateway.leave()

    counter = stage.router.state.metrics.observed_requests.labels(result)
    assert counter._value.get() == 1
    assert (gateway.got, gateway.status, stage.leases_open) == ([], 0, 0)


async def test_a_body_over_the_limit_is_not_kept(observer: Face, stage: Stage) -> None:
    await stage.load(version=2, limits={"body_bytes": 50})
    gateway = Gateway(observer)

    gateway.tell(*messages(stage))

    assert observer.held_bytes == 0
    assert stage.leases_open == 0


async def test_a_router_that_does_not_observe_says_so(face: Face, stage: Stage) -> None:
    gateway = Gateway(face)

    gateway.tell(*messages(stage))

    assert gateway.status == 9
    assert "--observe" in gateway.why
    assert stage.leases_open == 0


async def test_what_came_of_a_whole_answer_is_recorded_and_no_speed_is_learned_from_it(
    observer: Face, stage: Stage
) -> None:
    router = stage.router.state.directory.pools["main"].router
    speeds = router.speeds.errors()
    parts = messages(stage)[:3]
    metadata = {"envoy.lb": {SERVED: address(stage, "b")}}
    gateway = Gateway(observer)

    gateway.tell(*parts, response_headers(metadata=metadata), response_body(answer_body("b")))

    lines = (await told(stage))["decisions"]
    assert lines[-1]["outcome"]["cached_tokens"] == 11
    assert router.speeds.errors() == speeds
