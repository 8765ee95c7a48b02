"""Choices for calls are counted, and records say what was less than wanted."""

from pathlib import Path

import msgspec
import pytest

from routing.core.decision import Refusal
from routing.core.document import encode_document
from routing.servers import deciding
from routing.servers.app import Router, RouterOptions
from routing.servers.calls import Call, read_call
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState
from tests.routing.servers.scripted import (
    ADMIN_TOKEN,
    SECRET,
    Engine,
    Stage,
    answers,
    chat,
    document,
)

BODY = b'{"model":"granite-4.1-8b","prompt":"hello"}'


def loaded(folder: Path) -> tuple[RouterState, Call]:
    options = RouterOptions(name="r1", state_dir=folder, admin_token=ADMIN_TOKEN.encode())
    state = Router(options).state
    engines = [Engine(name, answers, port=port) for name, port in (("a", 8000), ("b", 8001))]
    state.directory.apply(encode_document(document(engines)))
    request = HttpRequest(
        method="POST",
        path="/v1/completions",
        query="",
        headers={b"authorization": f"Bearer {SECRET}".encode()},
        body=BODY,
    )
    return state, read_call(state, request, path=request.path, body=BODY)


async def test_a_request_id_that_somebody_else_used_changes_nothing_of_their_record(
    tmp_path: Path,
) -> None:
    state, call = loaded(tmp_path)
    theirs = deciding.decide(state, call, attempt=2)
    request = msgspec.structs.replace(call.request, tenant="hostile", id=theirs.request_id)
    hostile = msgspec.structs.replace(call, request=request)

    ours = deciding.decide(state, hostile, attempt=2)
    refusals = [
        deciding.refused(hostile, Refusal(status=503, code="no-capacity", message="None."))
        for _ in range(2)
    ]

    found = state.decisions.find(theirs.id)
    assert found is not None
    assert found["request"]["tenant"] == call.request.tenant
    assert len({theirs.id, ours.id, *(refused.id for refused in refusals)}) == 4


async def test_routers_and_their_lives_name_decisions_apart(tmp_path: Path) -> None:
    ids = []
    for life in ("one", "two"):
        state, call = loaded(tmp_path / life)
        ids.append(deciding.decide(state, call).id)

    assert ids[0] != ids[1]


async def test_what_failed_already_is_left_out(tmp_path: Path) -> None:
    state, call = loaded(tmp_path)

    decision = deciding.decide(state, call, excluded=frozenset({"a"}), attempt=2)

    assert decision.destination == "b"
    assert decision.rejected == {"a": "excluded"}


async def test_what_the_caller_knows_to_be_less_than_wanted_is_in_the_record(
    tmp_path: Path,
) -> None:
    state, call = loaded(tmp_path)

    decision = deciding.decide(state, call, attempt=2, degraded=("a-reason",))

    assert "a-reason" in decision.degraded
    (record,) = state.decisions.after(0, limit=5)
    assert b"a-reason" in record


async def test_a_refusal_before_any_choice_is_a_decision(tmp_path: Path) -> None:
    state, call = loaded(tmp_path)
    refusal = Refusal(status=429, code="busy", message="Busy.")

    decision = deciding.refused(call, refusal)
    deciding.note(state, decision, attempt=1, began_at=0.0)

    assert (decision.destination, decision.refusal) == (None, refusal)
    assert b'reason="busy"} 1.0' in state.metrics.page()


LONG = [{"role": "user", "content": "All of a long prompt. " * 400}]


@pytest.mark.parametrize("policy", ["consort", "round-robin"])
async def test_who_wants_a_cached_prompt_only_is_refused_without_one(
    stage: Stage, policy: str
) -> None:
    await stage.engine("a")
    await stage.load(policy={"name": policy})
    body, wish = chat(messages=LONG), "respond-async, If-Available"

    cold = await stage.ask(body, prefer=wish)
    await stage.ask(body)
    await stage.no_leases()
    warm = await stage.ask(body, prefer=wish)

    assert (cold.status, cold.json["error"]["code"]) == (412, "not-available")
    assert warm.status == 200
    assert len(stage.engines["a"].requests) == 2
    assert b"prefer" not in stage.engines["a"].headers[1]
    refused = (await stage.usage(3))[0]
    assert (refused["outcome"], refused["status"]) == ("refused", 412)
