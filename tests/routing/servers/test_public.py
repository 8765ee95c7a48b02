"""The inference port: keys, models, error forms, decisions on request."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.routing.servers.client import RawClient, request
from tests.routing.servers.scripted import CHAT, MODEL, SECRET, Stage, chat, key


def is_openai_error(body: Any) -> bool:
    return set(body) == {"error"} and set(body["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        pytest.param(None, "missing_api_key", id="none"),
        pytest.param("Bearer ", "missing_api_key", id="empty"),
        pytest.param(f"Basic {SECRET}", "missing_api_key", id="other-scheme"),
        pytest.param("Bearer sk-wrong", "invalid_api_key", id="unknown"),
        pytest.param("Bearer sk-old", "expired_api_key", id="expired"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", CHAT), ("POST", "/v1/completions"), ("GET", "/v1/models"), ("POST", "/v1/decide")],
)
async def test_without_a_valid_key_the_answer_is_401(
    stage: Stage, method: str, path: str, authorization: str | None, code: str
) -> None:
    await stage.load(
        keys=[
            key("ana", SECRET),
            key("old", "sk-old", expires_at=datetime.now(tz=UTC).timestamp() - 1),
        ]
    )
    headers = {} if authorization is None else {"authorization": authorization}

    answer = await request(stage.router.port, method, path, chat(), headers=headers)

    assert answer.status == 401
    assert is_openai_error(answer.json)
    assert answer.json["error"]["code"] == code


async def test_a_request_that_was_not_understood_keeps_its_id(stage: Stage) -> None:
    await stage.load()

    told = await stage.ask(b"{", x_request_id="mine")
    hostile = await stage.ask(b"{", x_request_id="x" * 200)
    without = await stage.ask(b"{", secret="sk-wrong", x_request_id="mine")

    assert (told.status, told.headers["x-request-id"]) == (400, "mine")
    assert "x-request-id" not in hostile.headers
    assert (without.status, without.headers["x-request-id"]) == (401, "mine")


@pytest.mark.parametrize("model", ["other", ""], ids=["unknown", "empty"])
async def test_an_unknown_model_is_404(stage: Stage, model: str) -> None:
    await stage.load()

    answer = await stage.ask(chat() | {"model": model})

    assert answer.status == 404
    assert answer.json["error"] == {
        "message": f"The model `{model}` does not exist.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }


async def test_a_model_that_the_key_may_not_use_does_not_exist_for_it(stage: Stage) -> None:
    keys = [key("ana", SECRET), key("ben", "sk-ben", models=["other"])]
    models = [{"name": MODEL, "max_model_len": 10}, {"name": "other", "max_model_len": 20}]
    await stage.load(keys=keys, models=models)

    refused = await stage.ask(chat(), secret="sk-ben")
    listed = await request(
        stage.router.port, "GET", "/v1/models", headers={"authorization": "Bearer sk-ben"}
    )
    one = await request(
        stage.router.port, "GET", f"/v1/models/{MODEL}", headers={"authorization": "Bearer sk-ben"}
    )

    assert (refused.status, one.status) == (404, 404)
    assert [(model["id"], model["max_model_len"]) for model in listed.json["data"]] == [
        ("other", 20)
    ]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        pytest.param(b"{", None, id="broken-json"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b"[]", None, id="no-object"),
        pytest.param(b'{"messages":[]}', "model", id="no-model"),
        pytest.param(b'{"model":1,"messages":[]}', "model", id="model-is-a-number"),
        pytest.param(b'{"model":"granite-4.1-8b"}', "messages", id="no-messages"),
        pytest.param(b'{"model":"granite-4.1-8b","messages":"x"}', "messages", id="no-list"),
        pytest.param(
            b'{"model":"granite-4.1-8b","messages":[],"max_tokens":"many"}',
            "max_tokens",
            id="no-number",
        ),
        pytest.param(
            b'{"model":"granite-4.1-8b","messages":[],"max_tokens":%b}' % (b"9" * 400),
            "max_tokens",
            id="endless-number",
        ),
        pytest.param(
            b'{"model":"granite-4.1-8b","messages":[],"x":%b}' % (b"[" * 50_000 + b"]" * 50_000),
            None,
            id="deep",
        ),
        pytest.param(
            b'{"model":"granite-4.1-8b","messages":[],"stream":true,"\xff":1}',
            None,
            id="no-utf8",
        ),
    ],
)
async def test_a_wrong_body_is_400_and_names_the_field(
    stage: Stage, body: bytes, param: str | None
) -> None:
    await stage.load()

    answer = await stage.ask(body)

    assert answer.status == 400
    assert is_openai_error(answer.json)
    assert answer.json["error"]["param"] == param


async def test_a_body_over_the_pools_bound_is_413_declared_or_chunked(stage: Stage) -> None:
    await stage.load(limits={"body_bytes": 200})
    large = chat(messages=[{"role": "user", "content": "x" * 300}])

    declared = await stage.ask(large)
    async with RawClient(stage.router.port) as client:
        await client.send(
            f"POST {CHAT} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {SECRET}\r\n"
            "transfer-encoding: chunked\r\n\r\n12c\r\n".encode()
            + b"x" * 300
            + b"\r\n"
        )
        chunked = await client.answer()

    assert (declared.status, chunked.status) == (413, 413)
    assert is_openai_error(declared.json)
    assert is_openai_error(chunked.json)


@pytest.mark.parametrize(
    "framing",
    ["content-length: 1000000", "transfer-encoding: chunked"],
    ids=["declared", "chunked"],
)
async def test_a_large_body_without_a_good_key_is_401_before_it_is_read(
    stage: Stage, framing: str
) -> None:
    await stage.load()

    async with RawClient(stage.router.port) as client:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer x\r\n{framing}\r\n\r\n"
        await client.send(head.encode())
        answer = await client.answer()

    assert answer.status == 401
    assert is_openai_error(answer.json)
    assert answer.json["error"]["code"] == "invalid_api_key"
    assert answer.headers["connection"] == "close"


async def test_the_smaller_bound_of_a_pool_holds_beside_a_larger_one(stage: Stage) -> None:
    await stage.load(limits={"body_bytes": 200})
    await stage.load(
        pool="other", models=[{"name": "big", "max_model_len": 10}], limits={"body_bytes": 5000}
    )
    messages = [{"role": "user", "content": "x" * 300}]

    small = await stage.ask(chat(messages=messages))
    big = await stage.ask({"model": "big", "messages": messages})

    assert (small.status, big.status) == (413, 503)


async def test_an_encoded_body_is_415(stage: Stage) -> None:
    await stage.load()

    answer = await stage.ask(chat(), content_encoding="gzip")

    assert answer.status == 415
    assert is_openai_error(answer.json)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", CHAT, 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/sleep", 404),
        ("GET", "/", 404),
    ],
)
async def test_other_paths_and_methods_are_refused_in_the_same_form(
    stage: Stage, method: str, path: str, status: int
) -> None:
    answer = await request(stage.router.port, method, path, b"{}")

    assert answer.status == status
    assert is_openai_error(answer.json)


async def test_limits_of_a_tenant_are_429_with_a_time_to_wait(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "requests_per_second": 1.0}])

    first, second = await stage.ask(chat()), await stage.ask(chat())

    assert (first.status, second.status) == (200, 429)
    assert second.headers["retry-after"] in {"1", "2"}
    assert second.json["error"]["type"] == "RateLimitError"


async def test_a_tenant_that_may_be_nowhere_here_is_403(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(tenants=[{"tenant": "tenant-ana", "jurisdictions": ["se"]}])

    answer = await stage.ask(chat())

    assert answer.status == 403
    assert answer.json["error"]["code"] == "policy-denied"


async def test_one_key_opens_the_models_of_several_pools(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load()
    await stage.load(pool="second", models=[{"name": "second-model", "max_model_len": 1000}])

    answer = await stage.ask(chat() | {"model": "second-model"})

    assert answer.status == 200
    assert engine.requests[0]["model"] == "second-model"
    assert (await stage.usage(1))[0]["pool"] == "second"


async def test_a_decision_can_be_asked_for_without_running_anything(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.load(policy={"name": "consort"}, keys=[key("ana", SECRET, may_test=True)])
    question = {"path": CHAT, "body": chat(messages=[{"role": "user", "content": "secret"}])}

    decided = await stage.ask(question, path="/v1/decide")
    explained = await stage.ask(question | {"policy": "random"}, path="/v1/explain")

    assert (decided.json["destination"], decided.json["policy"]) == ("a", "consort")
    assert (explained.json["candidates"][0]["endpoint"], explained.json["policy"]) == (
        "a",
        "random",
    )
    assert b"secret" not in explained.body
    assert not engine.requests
    assert stage.leases_open == 0


@pytest.mark.parametrize("language", ["en", "ko"])
async def test_an_ordinary_key_is_told_its_own_destination_only(
    stage: Stage, language: str
) -> None:
    for name in ("engine-a", "engine-b", "engine-c"):
        await stage.engine(name)
    await stage.load(policy={"name": "consort"})
    await stage.admin("POST", "/admin/endpoints/engine-c/drain")
    question = {"path": CHAT, "body": chat(), "language": language}

    answer = await stage.ask(question, path="/v1/decide", x_request_id="mine")

    told = answer.json
    others = {"engine-a", "engine-b", "engine-c"} - {told["destination"]}
    assert len(others) == 2
    assert not [name for name in others if name.encode() in answer.body]
    assert told["destination"] in told["reason"]
    assert told["headers"]["x-consort-decision-id"] == told["id"]
    assert told["headers"]["x-request-id"] == told["request_id"] == "mine"
    assert set(told) == {
        "id", "request_id", "pool", "policy", "model", "destination", "prefill", "refusal",
        "reason", "headers",
    }  # fmt: skip


async def test_a_refusal_is_told_in_words(stage: Stage) -> None:
    await stage.engine("engine-a")
    await stage.load()
    await stage.admin("POST", "/admin/endpoints/engine-a/drain")

    told = (await stage.ask({"path": CHAT, "body": chat()}, path="/v1/decide")).json

    assert (told["destination"], told["refusal"]["status"]) == (None, 503)
    assert told["reason"].startswith("The request was refused with 503")
    assert "engine-a" not in str(told)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        pytest.param("/v1/explain", {}, id="explain"),
        pytest.param("/v1/decide", {"policy": "dynamo"}, id="another-policy"),
    ],
)
async def test_what_tells_of_the_fleet_is_for_keys_that_may_test(
    stage: Stage, path: str, more: dict[str, str]
) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await stage.ask({"path": CHAT, "body": chat()} | more, path=path)

    assert (answer.status, answer.json["error"]["code"]) == (403, "may-not-test")


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(b"{", id="broken"),
        pytest.param({"path": "/v1/embeddings", "body": {}}, id="other-path"),
        pytest.param({"path": CHAT, "body": {}, "extra": 1}, id="unknown-member"),
        pytest.param({"path": CHAT, "body": chat(), "policy": "best"}, id="unknown-policy"),
        pytest.param({"path": CHAT, "body": {"model": MODEL}}, id="broken-inside"),
        pytest.param(b'{"path":"x","body":%b' % (b"[" * 50_000), id="deep"),
    ],
)
async def test_a_wrong_question_is_400(stage: Stage, question: Any) -> None:
    await stage.load()

    answer = await stage.ask(question, path="/v1/decide")

    assert answer.status == 400
    assert is_openai_error(answer.json)
