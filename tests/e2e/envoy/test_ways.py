"""Requests through the real Envoy, by every face: the same answers as from the router itself."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.envoy.mirror import MODEL as MIRROR
from tests.e2e.envoy.processes import access_log
from tests.e2e.envoy.stack import ALIAS, KEY, WAYS, Gateways
from tests.e2e.stack import until
from tests.routing.servers.scripted import CHAT, MODEL, chat

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]


@pytest.fixture(params=["proxy", *WAYS])
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def client(gateways: Gateways, way: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateways.urls[way], headers=KEY, timeout=20) as opened:
        yield opened


def mirrored(client: httpx.Client, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = client.post(CHAT, json=body | {"model": MIRROR}, headers=headers)
    assert answer.status_code == 200, answer.text
    seen: dict[str, Any] = answer.json()["seen"]
    return seen


def test_a_whole_answer_comes(client: httpx.Client) -> None:
    answer = client.post(CHAT, json=chat(max_tokens=8))

    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] == 8
    assert answer.headers["x-consort-decision-id"]
    assert answer.headers["x-consort-jurisdiction"] == "kr"


def test_a_stream_comes_with_every_event(client: httpx.Client) -> None:
    with client.stream("POST", CHAT, json=chat(max_tokens=30, stream=True)) as answer:
        lines = [line for line in answer.iter_lines() if line]

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert lines[-1] == "data: [DONE]"
    words = [json.loads(line[6:])["choices"] for line in lines[:-1]]
    assert sum(bool(one and one[0]["delta"].get("content")) for one in words) == 30


def test_a_name_that_is_rewritten_is_served_where_bodies_can_change(
    client: httpx.Client, way: str
) -> None:
    """Where answers are seen, they tell the name that was asked for."""
    whole = client.post(CHAT, json=chat(model=ALIAS, max_tokens=3))
    streamed = client.post(CHAT, json=chat(model=ALIAS, max_tokens=3, stream=True))

    if way == "ext_authz":
        assert (whole.status_code, whole.json()["error"]["code"]) == (422, "body-not-carried")
        return
    assert (whole.status_code, streamed.status_code) == (200, 200), whole.text
    told = MODEL if way == "ext_proc" else ALIAS
    first = json.loads(streamed.text.partition("\n\n")[0].removeprefix("data: "))
    assert whole.json()["model"] == first["model"] == told
    assert whole.json()["usage"]["completion_tokens"] == 3


def test_events_are_not_held_back(gateways: Gateways, client: httpx.Client) -> None:
    """The engine writes the rest only after the first event has arrived here."""
    gateways.mirror.go.clear()
    body = chat(stream=True, model=MIRROR)
    with client.stream("POST", CHAT, json=body) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        gateways.mirror.go.set()
        rest = [line for line in lines if line]

    assert first.startswith("data: {")
    assert rest[-1] == "data: [DONE]"


def test_a_body_of_a_megabyte_arrives_byte_for_byte(client: httpx.Client) -> None:
    text = json.dumps(chat(model=MIRROR, unknown="ü" * 300_000, padding=" " * 700_000))
    body = text.encode()

    answer = client.post(CHAT, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 200, answer.text
    seen = answer.json()["seen"]
    assert (seen["bytes"], seen["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())


def test_a_body_of_unknown_length_arrives(client: httpx.Client) -> None:
    body = json.dumps(chat(model=MIRROR)).encode()
    pieces = (body[start : start + 20] for start in range(0, len(body), 20))

    answer = client.post(CHAT, content=pieces, headers={"content-type": "application/json"})

    assert answer.status_code == 200, answer.text
    assert answer.json()["seen"]["sha256"] == hashlib.sha256(body).hexdigest()


def test_an_engine_sees_neither_key_nor_control_headers(client: httpx.Client) -> None:
    seen = mirrored(client, chat(), **{"x-session-id": "s", "x-llm-d-inference-ttl": "5s"})

    headers = set(seen["headers"])
    assert seen["path"] == CHAT
    assert not headers & {"authorization", "x-api-key", "x-session-id", "x-llm-d-inference-ttl"}
    assert seen["headers"]["content-type"] == "application/json"


def test_an_engine_gets_a_name_of_the_request_that_no_other_has(client: httpx.Client) -> None:
    first, second = (
        mirrored(client, chat(), **{"x-request-id": "r-1"})["headers"]["x-request-id"]
        for _ in range(2)
    )

    assert first.startswith("r-1.")
    assert first != second


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        pytest.param(b"{", {}, 400, id="bad-json"),
        pytest.param(chat(model="unknown"), {}, 404, id="unknown-model"),
        pytest.param(chat(), {"authorization": "Bearer no"}, 401, id="unknown-key"),
    ],
)
def test_a_refusal_is_the_routers(
    client: httpx.Client, body: Any, headers: dict[str, str], status: int
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    answer = client.post(CHAT, content=content, headers=headers)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.json()["error"]["message"]


def test_the_list_of_models_is_there(client: httpx.Client) -> None:
    answer = client.get("/v1/models")

    assert answer.status_code == 200
    assert "granite-4.1-8b" in [model["id"] for model in answer.json()["data"]]


@pytest.mark.parametrize("path", ["/v1/load_lora_adapter", "/metrics", "/sleep", "/v1//files"])
def test_what_manages_an_engine_is_out_of_reach(client: httpx.Client, path: str) -> None:
    assert client.post(path, json={}).status_code in (403, 404)


@pytest.mark.parametrize("way", sorted(WAYS), indirect=True)
def test_the_access_log_names_decision_and_endpoint(
    gateways: Gateways, client: httpx.Client, way: str
) -> None:
    decision = client.post(CHAT, json=chat(max_tokens=2)).headers["x-consort-decision-id"]
    # Lines are written in the background; the next answers push them out.
    for _ in range(200):
        lines = [line for line in access_log(gateways.folder / way) if line["decision"] == decision]
        if lines:
            break
        client.get("/v1/models")

    (line,) = lines
    assert line["served"] == line["picked"].split(",")[0]
    assert line["status"] == 200


def test_what_has_ended_is_off_the_books_whether_its_end_was_seen_or_not(
    gateways: Gateways, client: httpx.Client
) -> None:
    for _ in range(3):
        assert client.post(CHAT, json=chat(max_tokens=2)).status_code == 200

    until(
        lambda: gateways.state()["leases_open"] == 0,
        seconds=20,
        what="leases of answered requests are closed",
    )


def test_a_client_that_leaves_ends_its_request_at_the_engine(
    gateways: Gateways, client: httpx.Client
) -> None:
    """The books close only when the engine has stopped, long before the answer would have ended."""
    with client.stream("POST", CHAT, json=chat(max_tokens=90_000, stream=True)) as answer:
        next(answer.iter_lines())

    until(
        lambda: gateways.state()["leases_open"] == 0,
        seconds=20,
        what="the lease of a client that left is closed",
    )
