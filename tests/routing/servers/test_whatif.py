"""Explain and replay on a running router: nothing is sent, nothing of the prompt is kept."""

from typing import Any

import pytest

from tests.routing.servers.client import request
from tests.routing.servers.scripted import MODEL, Stage, chat

QUESTION = {"pool": "main", "tenant": "tenant-a", "prompt_tokens": 3000, "max_tokens": 50}
EVERY = {"recording": {"sample_rate": 1.0}, "policy": {"name": "consort"}}


async def prepared(stage: Stage, **changes: Any) -> Stage:
    await stage.engine("a")
    await stage.engine("b")
    await stage.load(**(EVERY | changes))
    return stage


async def recorded(stage: Stage, kind: str = "chosen") -> dict[str, Any]:
    answer = await stage.admin("GET", f"/admin/decisions?kind={kind}")
    record: dict[str, Any] = answer.json["decisions"][-1]
    return record


async def test_a_request_of_sizes_is_explained_without_being_sent(stage: Stage) -> None:
    await prepared(stage)

    answer = await stage.admin("POST", "/admin/explain", QUESTION | {"language": "ko"})

    told = answer.json
    assert answer.status == 200, answer.body
    assert told["record"]["request"]["prompt_tokens"] == 3000
    assert told["record"]["inputs"]["endpoints"] == ["a", "b"]
    assert told["explanation"]["language"] == "ko"
    assert told["explanation"]["sentence"]
    assert [engine.requests for engine in stage.engines.values()] == [[], []]


async def test_a_question_that_shares_the_prefix_of_a_decision_meets_the_live_cache(
    stage: Stage,
) -> None:
    await prepared(stage)
    await stage.ask(chat(messages=[{"role": "user", "content": "secret " * 4000}]))
    before = await recorded(stage)

    alone = await stage.admin("POST", "/admin/explain", QUESTION)
    shared = await stage.admin("POST", "/admin/explain", QUESTION | {"like": before["id"]})
    part = await stage.admin(
        "POST", "/admin/explain", QUESTION | {"like": before["id"], "shared_tokens": 1000}
    )

    hits = [answer.json["record"]["predicted"]["hit_tokens"] for answer in (alone, part, shared)]
    assert hits[0] == 0
    assert 800 < hits[1] <= 1000
    assert 2800 < hits[2] < 3000
    assert shared.json["record"]["destination"] == before["destination"]
    assert b"secret" not in shared.body


async def test_a_whole_body_is_explained_and_forgotten(stage: Stage) -> None:
    await prepared(stage)
    body = chat(messages=[{"role": "user", "content": "secret " * 400}])

    answer = await stage.admin(
        "POST", "/admin/explain", {"pool": "main", "tenant": "t", "body": body}
    )

    assert answer.json["record"]["request"]["model"] == MODEL
    assert b"secret" not in answer.body


@pytest.mark.lesson("T02")
async def test_a_test_forces_an_endpoint_but_no_hard_filter(stage: Stage) -> None:
    await prepared(stage, tenants=[{"tenant": "far", "jurisdictions": ["de"]}])

    forced = await stage.admin("POST", "/admin/explain", QUESTION | {"force": ["b"]})
    avoided = await stage.admin("POST", "/admin/explain", QUESTION | {"avoid": ["b"]})
    far = await stage.admin("POST", "/admin/explain", QUESTION | {"tenant": "far", "force": ["b"]})

    assert forced.json["record"]["destination"] == "b"
    assert forced.json["explanation"]["kind"] == "forced"
    assert avoided.json["record"]["destination"] == "a"
    assert far.json["record"]["refusal"]["status"] == 403


async def test_a_record_is_replayed_under_another_policy_and_without_its_destination(
    stage: Stage,
) -> None:
    await prepared(stage)
    await stage.ask(chat())
    record = await recorded(stage)

    same = await stage.admin("POST", "/admin/replay", {"decision": record["id"]})
    other = await stage.admin(
        "POST",
        "/admin/replay",
        {"record": record, "policy": "random", "remove": [record["destination"]]},
    )

    assert same.json["record"]["destination"] == record["destination"]
    assert same.json["record"]["candidates"] == record["candidates"]
    assert other.json["record"]["policy"] == "random"
    assert other.json["record"]["destination"] != record["destination"]


@pytest.mark.lesson("T05")
async def test_a_record_gets_what_really_happened(stage: Stage) -> None:
    await prepared(stage)
    await stage.ask(chat(stream=True))
    record = await recorded(stage)

    one = await stage.admin("GET", f"/admin/decisions/{record['id']}")

    outcome = one.json["record"]["outcome"]
    assert (outcome["outcome"], outcome["status"]) == ("ok", 200)
    assert outcome["ttft_seconds"] > 0
    assert outcome["cached_tokens"] == 11
    assert any("first token came after" in point for point in one.json["explanation"]["points"])
    assert (await recorded(stage, "outcome"))["outcome_of"] == record["id"]


async def test_metrics_show_how_shadow_policies_do(stage: Stage) -> None:
    shadow = {"sample_rate": 1.0, "shadow_policies": ["random"], "shadow_rate": 1.0}
    await prepared(stage, recording=shadow)
    await stage.ask(chat())

    page = (await request(stage.router.admin_port, "GET", "/metrics")).body.decode()

    assert 'consort_shadow_asked{policy="random",pool="main"} 1.0' in page
    assert 'consort_shadow_regret_seconds{policy="random",pool="main"}' in page


@pytest.mark.parametrize(
    ("path", "question", "status"),
    [
        ("explain", b"{", 400),
        ("explain", QUESTION | {"pool": "other"}, 404),
        ("explain", QUESTION | {"prompt_tokens": None}, 400),
        ("explain", QUESTION | {"prompt_tokens": -3}, 400),
        ("explain", QUESTION | {"colour": "red"}, 400),
        ("explain", QUESTION | {"like": "nobody"}, 404),
        ("explain", {"pool": "main", "tenant": "t", "body": {"model": 3}}, 400),
        ("replay", {"decision": "nobody"}, 404),
        ("replay", {"record": {"pool": "main"}}, 422),
        ("replay", {}, 404),
        ("replay", {"record": {"pool": "main"}, "document": {"pool": 1}}, 422),
    ],
)
async def test_questions_that_cannot_be_answered_are_problems(
    stage: Stage, path: str, question: Any, status: int
) -> None:
    await prepared(stage)

    answer = await stage.admin("POST", f"/admin/{path}", question)

    assert answer.status == status, answer.body
    assert answer.json["detail"]


@pytest.mark.parametrize(
    "asked", [{"model": "chat"}, {"body": chat(model="chat"), "prompt_tokens": None}]
)
async def test_a_name_that_is_rewritten_is_explained_as_what_is_served(
    stage: Stage, asked: dict[str, Any]
) -> None:
    await prepared(stage, rewrites=[{"models": ["chat"], "targets": [{"model": MODEL}]}])

    answer = await stage.admin("POST", "/admin/explain", QUESTION | asked)

    facts = answer.json["record"]["request"]
    assert (facts["model"], facts["asked_model"]) == (MODEL, "chat")
