"""The face for Envoy's ext_authz filter: what goes on, where to, and what is refused."""

from typing import Any

import pytest

from routing.servers.faces import authz
from routing.servers.faces.ports import FaceOptions
from tests.routing.servers.client import Answer, RawClient, message, request
from tests.routing.servers.scripted import CHAT, MODEL, SECRET, Stage, chat, key

KEY = {"authorization": f"Bearer {SECRET}"}


@pytest.fixture
async def stage(stage: Stage) -> Stage:
    await stage.router.stop()
    await stage.start_router(faces=FaceOptions(authz=0))
    return stage


def port(stage: Stage) -> int:
    return stage.router.face_ports[0]["authz"]


async def pick(stage: Stage, body: Any, *, path: str = CHAT, **headers: str) -> Answer:
    return await request(port(stage), "POST", "/pick" + path, body, headers=KEY | headers)


def address(stage: Stage, name: str) -> str:
    return f"127.0.0.1:{stage.engines[name].port}"


async def test_a_request_goes_on_with_its_destination_and_no_body(stage: Stage) -> None:
    await stage.engine("a")
    await stage.engine("b")
    await stage.load()

    answer = await pick(stage, chat(), **{"x-request-id": "r-1"})

    assert (answer.status, answer.body) == (200, b"")
    named = answer.headers["x-gateway-destination-endpoint"].split(",")
    assert sorted(named) == sorted([address(stage, "a"), address(stage, "b")])
    assert answer.headers["x-consort-decision-id"]
    assert answer.headers["x-consort-jurisdiction"] == "kr"
    assert answer.headers["x-request-id"].startswith("r-1.")
    assert stage.leases_open == 1


async def test_it_is_the_same_decision_as_the_proxys(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        await stage.engine(name)
    await stage.load(policy={"name": "consort"})
    prompt = chat(messages=[{"role": "user", "content": "The same begin. " * 400}])

    served = (await stage.ask(prompt)).json["choices"][0]["message"]["content"]
    answer = await pick(stage, prompt)

    first = answer.headers["x-gateway-destination-endpoint"].split(",")[0]
    assert served == "from " + next(name for name in stage.engines if address(stage, name) == first)


async def test_a_pair_is_told_by_both_addresses(stage: Stage) -> None:
    await stage.engine("p")
    await stage.engine("d")
    await stage.load(roles={"p": "prefill", "d": "decode"})

    answer = await pick(stage, chat(messages=[{"role": "user", "content": "word " * 6000}]))

    assert answer.headers["x-gateway-destination-endpoint"] == address(stage, "d")
    assert answer.headers["x-prefiller-host-port"] == address(stage, "p")


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        pytest.param(b"{", {}, 400, 400, id="bad-json"),
        pytest.param(chat(model="unknown"), {}, 404, 404, id="unknown-model"),
        pytest.param(
            chat(), {"authorization": "Bearer no"}, 401, "invalid_api_key", id="unknown-key"
        ),
        pytest.param(chat(), {"content-encoding": "gzip"}, 415, 415, id="compressed"),
        pytest.param(chat(bootstrap_room=1), {}, 400, 400, id="a-member-of-the-router"),
    ],
)
async def test_what_is_refused_is_told_as_everywhere(
    stage: Stage, body: Any, headers: dict[str, str], status: int, code: Any
) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await pick(stage, body, **headers)
    counts = (await stage.admin("GET", "/admin/state")).json["requests"]

    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    assert counts["by_status"] == {str(status): 1}
    assert stage.leases_open == 0


async def test_a_pool_without_a_ready_endpoint_is_no_capacity(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    await stage.admin("POST", "/admin/endpoints/a/drain")

    answer = await pick(stage, chat())

    # Envoy would take a 503 for a failure of the filter.
    assert answer.status == authz.STANDS_FOR_IT == 424
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-no-endpoints"


async def test_a_tenant_over_its_limit_is_told_when_to_come_back(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "requests_per_second": 1.0}])

    first, second = await pick(stage, chat()), await pick(stage, chat())

    assert (first.status, second.status) == (200, 429)
    assert int(second.headers["retry-after"]) >= 1
    assert first.headers["x-ratelimit-limit-requests"] == "1"


async def test_a_message_of_anthropics_api_is_refused_in_its_form(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await pick(stage, {"model": "unknown", "messages": []}, path="/v1/messages")

    assert answer.json["type"] == "error"


async def test_a_body_that_would_have_to_change_is_not_let_through(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "cache_salt": "s" * 32}])

    answer = await pick(stage, chat())

    assert (answer.status, answer.json["error"]["code"]) == (422, "body-not-carried")
    assert stage.leases_open == 0


async def test_the_list_of_models_goes_to_any_endpoint(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await request(port(stage), "GET", "/pick/v1/models", headers=KEY)

    assert answer.headers["x-gateway-destination-endpoint"] == address(stage, "a")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/pickv1/models", "/"])
async def test_only_questions_under_the_prefix_are_answered(stage: Stage, path: str) -> None:
    answer = await request(port(stage), "POST", path, chat(), headers=KEY)

    assert answer.status == 404


async def test_a_question_that_is_cut_off_leaves_no_lease(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    async with RawClient(port(stage)) as client:
        await client.send(message("POST", "/pick" + CHAT, chat(), headers=KEY)[:-10])
    answer = await pick(stage, chat())

    assert answer.status == 200
    assert stage.leases_open == 1


async def test_a_large_body_of_a_stranger_is_not_read(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    head = message("POST", "/pick" + CHAT, headers={"authorization": "Bearer no"})
    async with RawClient(port(stage)) as client:
        await client.send(head.replace(b"content-length: 0", b"content-length: 9999999"))
        status, _ = await client.head()

    assert status == 401


def test_envoy_is_asked_to_show_what_a_decision_reads() -> None:
    assert {"authorization", "x-session-id", "x-llm-d-inference-ttl"} <= set(authz.READ_HEADERS)
    assert authz.DESTINATION not in authz.READ_HEADERS


async def test_a_key_for_one_model_may_ask_for_it(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(keys=[key("ana", SECRET, models=[MODEL])])

    assert (await pick(stage, chat())).status == 200
