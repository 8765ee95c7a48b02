"""Models under other names, through the proxy: what engines get, clients see and books say."""

import json
from collections import Counter
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
    answer_body,
    chat,
    event,
    key,
)

ADAPTER = "granite-legal"
MODELS = [
    {"name": MODEL, "max_model_len": 100_000},
    {"name": ADAPTER, "max_model_len": 50_000, "adapter_of": MODEL},
]
ALIAS = {"models": ["chat"], "targets": [{"model": MODEL}]}
CANARY = {
    "models": ["chat"],
    "targets": [{"model": MODEL, "weight": 90}, {"model": ADAPTER, "weight": 10}],
}


async def echoes(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Answers under the model's own name, as engines do."""
    body = json.loads(received.body)
    if not body.get("stream"):
        client.respond(200, answer_body(engine.name, model=body["model"]))
        return
    client.open_stream(200, content_type=b"text/event-stream")
    for word in ("from", engine.name):
        client.send(event({"content": word}, model=body["model"]))
    client.send(b"data: [DONE]\n\n")
    client.close_stream()


async def ready(stage: Stage, *rewrites: dict[str, Any], **changes: Any) -> Engine:
    engine = await stage.engine("a", echoes)
    await stage.load(**({"models": MODELS, "rewrites": list(rewrites)} | changes))
    return engine


def models_in(stream: bytes) -> set[str]:
    events = [line[6:] for line in stream.split(b"\n\n") if line.startswith(b"data: {")]
    return {json.loads(data)["model"] for data in events}


async def recorded(stage: Stage) -> list[dict[str, Any]]:
    found = (await stage.admin("GET", "/admin/decisions")).json["decisions"]
    return [one["request"] for one in found if "request" in one]


async def test_an_alias_is_served_and_the_client_sees_what_it_asked_for(stage: Stage) -> None:
    engine = await ready(stage, ALIAS)

    whole = await stage.ask(chat(model="chat"))
    streamed = await stage.ask(chat(model="chat", stream=True))

    assert (whole.status, whole.json["model"]) == (200, "chat")
    assert models_in(streamed.body) == {"chat"}
    assert [body["model"] for body in engine.requests] == [MODEL, MODEL]


async def test_usage_and_records_say_both_names(stage: Stage) -> None:
    await ready(stage, ALIAS, recording={"sample_rate": 1.0})

    await stage.ask(chat(model="chat"))
    await stage.ask(chat())

    rewritten, plain = await stage.usage(2)
    assert (rewritten["model"], rewritten["asked_model"]) == (MODEL, "chat")
    assert "asked_model" not in plain
    records = await recorded(stage)
    assert (records[0]["model"], records[0]["asked_model"]) == (MODEL, "chat")


async def test_every_other_byte_of_the_body_stays(stage: Stage) -> None:
    bodies: list[bytes] = []

    async def keeps(engine: Engine, received: HttpRequest, client: Connection) -> None:
        bodies.append(received.body)
        client.respond(200, answer_body(engine.name))

    await stage.engine("a", keeps)
    await stage.load(models=MODELS, rewrites=[ALIAS])
    raw = b'{ "messages": [{"role":"user","content":"hi"}],  "model" : "chat", "odd": 1.50 }'

    await stage.ask(raw)

    assert bodies == [raw.replace(b'"chat"', json.dumps(MODEL).encode())]


@pytest.mark.lesson("T07")
async def test_a_canary_sticks_to_its_callers(stage: Stage) -> None:
    engine = await ready(stage, CANARY)
    sessions = [f"s{number}" for number in range(40)]

    for _ in range(2):
        for session in sessions:
            await stage.ask(chat(model="chat", max_tokens=1), x_session_id=session)

    got = [body["model"] for body in engine.requests]
    assert got[:40] == got[40:]
    assert Counter(got[:40]).keys() == {MODEL, ADAPTER}


async def test_without_a_session_the_key_decides(stage: Stage) -> None:
    keys = [key("ana", SECRET), *(key(f"k{n}", f"sk-{n}") for n in range(40))]
    engine = await ready(stage, CANARY, keys=keys)

    for number in range(40):
        for _ in range(2):
            await stage.ask(chat(model="chat"), secret=f"sk-{number}")

    got = [body["model"] for body in engine.requests]
    assert got[::2] == got[1::2]
    assert set(got) == {MODEL, ADAPTER}


@pytest.mark.parametrize("name", ["x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite"])
async def test_a_header_names_the_model_to_forward(stage: Stage, name: str) -> None:
    engine = await ready(stage, ALIAS)

    answer = await stage.ask(chat(), **{name: ADAPTER})

    assert answer.json["model"] == MODEL
    assert engine.requests[0]["model"] == ADAPTER
    assert name.encode() not in engine.headers[0]


async def test_a_header_opens_no_model_that_the_key_lacks(stage: Stage) -> None:
    engine = await ready(stage, keys=[key("ana", SECRET, models=[MODEL])])

    answer = await stage.ask(chat(), x_llm_d_model_name_rewrite=ADAPTER)

    assert answer.status == 404
    assert engine.requests == []


async def test_a_key_is_for_the_name_that_is_asked_for(stage: Stage) -> None:
    await ready(stage, ALIAS, keys=[key("ana", SECRET, models=["chat"])])

    assert (await stage.ask(chat(model="chat"))).status == 200
    assert (await stage.ask(chat())).status == 404


async def test_a_rule_for_every_name_takes_names_that_no_pool_knows(stage: Stage) -> None:
    every = {"targets": [{"model": ADAPTER}]}
    engine = await ready(stage, every)

    answer = await stage.ask(chat(model="gpt-anything"))

    assert (answer.status, answer.json["model"]) == (200, "gpt-anything")
    assert engine.requests[0]["model"] == ADAPTER


@pytest.mark.parametrize("name", ["x" * 201, "a\x00b", "line\nbreak"])
async def test_a_name_that_no_books_could_hold_is_unknown(stage: Stage, name: str) -> None:
    engine = await ready(stage, {"targets": [{"model": ADAPTER}]})

    asked = await stage.ask(chat(model=name))
    by_header = await stage.ask(chat(model=name), x_llm_d_model_name_rewrite=MODEL)

    assert (asked.status, by_header.status) == (404, 404)
    assert engine.requests == []


async def test_a_pool_that_knows_the_name_comes_before_one_that_takes_every_name(
    stage: Stage,
) -> None:
    engine = await ready(stage, {"targets": [{"model": ADAPTER}]}, pool="catch-all", models=MODELS)
    await stage.load(pool="exact", models=[{"name": "phi", "max_model_len": 1000}])

    await stage.ask(chat(model="phi"))

    assert engine.requests[0]["model"] == "phi"


async def test_aliases_are_listed_as_models(stage: Stage) -> None:
    await ready(stage, CANARY)

    headers = {"authorization": f"Bearer {SECRET}"}
    listed = await request(stage.router.port, "GET", "/v1/models", headers=headers)

    found = {model["id"]: model["max_model_len"] for model in listed.json["data"]}
    assert found == {MODEL: 100_000, ADAPTER: 50_000, "chat": 50_000}


async def test_who_sends_the_request_itself_is_told_the_model(stage: Stage) -> None:
    await ready(stage, ALIAS, keys=[key("ana", SECRET, may_reserve=True)])

    asked = {"path": "/v1/chat/completions", "body": chat(model="chat")}
    decided = await stage.ask(asked, path="/v1/decide")
    reserved = await stage.ask(asked, path="/v1/reserve")
    plain = await stage.ask(asked | {"body": chat()}, path="/v1/decide")

    assert decided.json["model"] == reserved.json["decision"]["model"] == MODEL
    assert plain.json["model"] is None


async def test_paths_that_are_passed_on_are_rewritten_too(stage: Stage) -> None:
    engine = await ready(stage, ALIAS, limits={"unknown_paths": "pass"})

    answer = await stage.ask({"model": "chat", "prompt": "x"}, path="/tokenize")

    assert engine.requests == [{"model": MODEL, "prompt": "x"}]
    assert answer.json["model"] == "chat"


async def test_a_body_that_is_no_text_is_refused_where_it_would_be_rewritten(stage: Stage) -> None:
    engine = await ready(stage, ALIAS, limits={"unknown_paths": "pass"})
    body = b'{"\xff": 1, "options": {"model": "x"}, "model": "chat", "prompt": "x"}'

    answer = await stage.ask(body, path="/tokenize")

    assert (answer.status, engine.requests) == (400, [])
    assert "cannot be read" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-llm-d-inference-objective": "interactive"}, ("interactive", 10)),
        ({"x-gateway-inference-objective": "batch"}, ("batch", -5)),
        ({"x-llm-d-inference-objective": "unheard-of"}, (None, 0)),
    ],
)
async def test_an_objective_becomes_the_priority(
    stage: Stage, headers: dict[str, str], expected: tuple[str | None, int]
) -> None:
    keys = [key("ana", SECRET, highest_priority=100)]
    objectives = {"interactive": 10, "batch": -5}
    await ready(stage, objectives=objectives, keys=keys, recording={"sample_rate": 1.0})

    await stage.ask(chat(), **headers)

    (told,) = await recorded(stage)
    assert (told["objective"], told["priority"]) == expected
