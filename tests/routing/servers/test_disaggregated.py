"""Prefill/decode pairs: both legs, and what happens when one end fails."""

import asyncio
import json

import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import RawClient, message
from tests.routing.servers.scripted import (
    CHAT,
    MODEL,
    SECRET,
    Engine,
    Stage,
    answer_body,
    answers,
    chat,
    cuts_in_the_middle,
    hangs,
    status_script,
)

ROLES = {"p1": "prefill", "p2": "prefill", "d1": "decode", "d2": "decode"}


LONG = [{"role": "user", "content": "A long prompt. " * 2000}]


TICKET = {"do_remote_prefill": True, "remote_prefill_cached_tokens": 5, "remote_host": "p"}


async def load_pair(stage: Stage, *names: str) -> None:
    await stage.load(roles={name: ROLES[name] for name in names})


async def test_the_prompt_goes_to_one_engine_and_its_ticket_to_the_other(stage: Stage) -> None:
    prefill, decode = await stage.engine("p1"), await stage.engine("d1")
    await load_pair(stage, "p1", "d1")

    answer = await stage.ask(chat(messages=LONG, max_tokens=9), x_request_id="same")

    assert answer.json["choices"][0]["message"]["content"] == "from d1"
    first, second = prefill.requests[0], decode.requests[0]
    assert (first["max_tokens"], first["stream"]) == (1, False)
    assert first["kv_transfer_params"]["do_remote_decode"] is True
    assert second == chat(messages=LONG, max_tokens=9, kv_transfer_params=TICKET)
    assert prefill.headers[0][b"x-request-id"] == decode.headers[0][b"x-request-id"]
    assert decode.headers[0][b"x-request-id"].startswith(b"same.")


async def test_the_client_and_the_bill_see_the_prefill_engines_cached_tokens(stage: Stage) -> None:
    await stage.engine("p1")
    await stage.engine("d1")
    await load_pair(stage, "p1", "d1")
    wish = {"include_usage": True}

    whole = await stage.ask(chat(messages=LONG))
    stream = await stage.ask(chat(messages=LONG, stream=True, stream_options=wish))

    assert whole.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 5
    usage = json.loads(stream.events[-2].removeprefix("data: "))["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 5
    used = await stage.usage(2)
    assert [one["cached_tokens"] for one in used] == [5, 5]
    assert {(one["endpoint"], one["prefill_endpoint"]) for one in used} == {("d1", "p1")}


async def test_a_short_prompt_is_computed_where_it_is_decoded(stage: Stage) -> None:
    prefill, decode = await stage.engine("p1"), await stage.engine("d1")
    await stage.load(roles={"p1": "prefill", "d1": "decode"}, policy={"name": "consort"})

    answer = await stage.ask(chat())

    assert answer.status == 200
    assert (len(prefill.requests), len(decode.requests)) == (0, 1)


async def test_when_a_prefill_engine_fails_another_one_computes_the_prompt(stage: Stage) -> None:
    bad = await stage.engine("p1", status_script(503))
    good, _ = await stage.engine("p2"), await stage.engine("d1")
    await load_pair(stage, "p1", "p2", "d1")

    statuses = [(await stage.ask(chat(messages=LONG))).status for _ in range(2)]

    assert statuses == [200, 200]
    assert len(good.requests) == 2
    used = await stage.usage(2 + len(bad.requests))
    failed = [one for one in used if not one["delivered"]]
    assert {(one["endpoint"], one["role"]) for one in failed} == {("p1", "prefill")}


async def test_when_every_prefill_engine_fails_the_prompt_is_computed_locally(stage: Stage) -> None:
    await stage.engine("p1", status_script(503))
    await stage.engine("p2", status_script(503))
    decode = await stage.engine("d1")
    await load_pair(stage, "p1", "p2", "d1")

    answer = await stage.ask(chat(messages=LONG))

    assert answer.status == 200
    assert "kv_transfer_params" not in decode.requests[0]
    assert (await stage.usage(3))[-1]["prefill_endpoint"] is None
    assert stage.leases_open == 0


async def test_a_prefill_answer_without_a_ticket_is_a_failed_leg(stage: Stage) -> None:
    async def forgets(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.respond(200, answer_body(engine.name))

    await stage.engine("p1", forgets)
    decode = await stage.engine("d1")
    await load_pair(stage, "p1", "d1")

    answer = await stage.ask(chat(messages=LONG))

    assert answer.status == 200
    assert "kv_transfer_params" not in decode.requests[0]


async def test_a_clients_mistake_found_by_the_prefill_engine_is_passed_on(stage: Stage) -> None:
    await stage.engine("p1", status_script(400, b'{"error":{"message":"too long"}}'))
    decode = await stage.engine("d1")
    await load_pair(stage, "p1", "d1")

    answer = await stage.ask(chat(messages=LONG))

    assert (answer.status, answer.json) == (400, {"error": {"message": "too long"}})
    assert not decode.requests


async def test_a_decode_engine_that_fails_after_its_first_token_is_blamed_itself(
    stage: Stage,
) -> None:
    await stage.engine("p1")
    await stage.engine("d1", cuts_in_the_middle)
    await load_pair(stage, "p1", "d1")

    await stage.ask(chat(messages=LONG, stream=True))

    state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
    ends = {one["id"]: one["breaker"]["last_failure"] for one in state["endpoints"]}
    assert ends == {"p1": None, "d1": "status"}
    assert [one["breaker"]["last_failure"] for one in state["pairs"]] == [None]


async def test_a_decode_engine_that_did_not_begin_hands_the_ticket_on(stage: Stage) -> None:
    prefill = await stage.engine("p1")
    bad, good = await stage.engine("d1", status_script(503)), await stage.engine("d2")
    await load_pair(stage, "p1", "d1", "d2")

    statuses = [(await stage.ask(chat(messages=LONG, stream=True))).status for _ in range(2)]

    assert statuses == [200, 200]
    assert bad.requests
    # Once per request: the refused one did not have its prompt computed again.
    assert len(prefill.requests) == 2
    assert all(body["kv_transfer_params"] == TICKET for body in good.requests)
    used = await stage.usage(2 + len(bad.requests))
    handed = [one for one in used if not one["delivered"]]
    assert [(one["endpoint"], one["prompt_tokens"]) for one in handed] == [("d1", None)]
    delivered = [one for one in used if one["delivered"]]
    assert {(one["prefill_endpoint"], one["cached_tokens"]) for one in delivered} == {("p1", 5)}
    assert stage.leases_open == 0


async def test_a_decode_engine_that_failed_at_work_has_the_prompt_computed_again(
    stage: Stage,
) -> None:
    prefill = await stage.engine("p1")
    bad, good = await stage.engine("d1", status_script(500)), await stage.engine("d2")
    await load_pair(stage, "p1", "d1", "d2")

    statuses = [(await stage.ask(chat(messages=LONG))).status for _ in range(2)]

    assert statuses == [200, 200]
    assert len(prefill.requests) == len(bad.requests) + len(good.requests)
    page = (await stage.admin("GET", "/metrics")).body.decode()
    assert f'consort_unfetched_prefills_total{{pool="main"}} {len(bad.requests)}.0' in page


async def test_a_dead_decode_engines_ticket_is_handed_on(stage: Stage) -> None:
    prefill = await stage.engine("p1")
    dead, good = await stage.engine("d1"), await stage.engine("d2")
    await load_pair(stage, "p1", "d1", "d2")
    await dead.stop()

    statuses = [(await stage.ask(chat(messages=LONG))).status for _ in range(2)]

    assert statuses == [200, 200]
    assert (len(prefill.requests), len(good.requests)) == (2, 2)


async def test_a_prompt_computed_for_a_client_that_left_is_counted(stage: Stage) -> None:
    await stage.engine("p1")
    decode = await stage.engine("d1", hangs)
    await load_pair(stage, "p1", "d1")

    async with RawClient(stage.router.port) as client:
        headers = {"authorization": f"Bearer {SECRET}"}
        await client.send(message("POST", CHAT, chat(messages=LONG), headers=headers))
        async with asyncio.timeout(5):
            while not decode.requests:
                await asyncio.sleep(0.005)

    await stage.no_leases()
    page = (await stage.admin("GET", "/metrics")).body.decode()
    assert 'consort_unfetched_prefills_total{pool="main"} 1.0' in page
    pool = stage.router.state.directory.pools["main"].router
    # Its blocks weigh on the prefill end until the engine drops them.
    assert pool._known.table.private_tokens[0] > 0


@pytest.mark.parametrize("status", [500, 501])
async def test_a_prefill_engine_that_failed_at_work_is_not_followed_by_another(
    stage: Stage, status: int
) -> None:
    bad = await stage.engine("p1", status_script(status))
    other, decode = await stage.engine("p2"), await stage.engine("d1")
    await load_pair(stage, "p1", "p2", "d1")

    for _ in range(2):
        assert (await stage.ask(chat(messages=LONG))).status == 200

    # Of two requests one went to each prefill engine first, and none to both.
    assert (len(bad.requests), len(other.requests)) == (1, 1)
    assert sum("kv_transfer_params" not in body for body in decode.requests) == 1


async def test_a_prompt_that_is_computed_in_the_wrong_place_is_said_to_be(stage: Stage) -> None:
    await stage.engine("p1", status_script(500))
    await stage.engine("d1")
    await load_pair(stage, "p1", "d1")

    await stage.ask(chat(messages=LONG))

    records = (await stage.admin("GET", "/admin/decisions?after=0")).json["decisions"]
    words = [word for one in records for word in one.get("degraded", [])]
    assert "prefill-failed-computed-locally" in words


async def test_a_long_prompt_is_not_computed_in_the_wrong_place(stage: Stage) -> None:
    await stage.engine("p1", status_script(500))
    decode = await stage.engine("d1")
    rules = {"warm_up": False, "local_prefill_tokens": 1000}
    await stage.load(roles={"p1": "prefill", "d1": "decode"}, disaggregation=rules)

    answer = await stage.ask(chat(messages=LONG))

    assert answer.status == 503
    assert answer.json["error"]["code"] == "prefill-unavailable"
    assert answer.headers["retry-after"]
    assert decode.requests == []
    assert [one["delivered"] for one in await stage.usage(2)] == [False, True]
    assert stage.leases_open == 0


async def test_once_the_client_has_a_byte_nothing_is_tried_again(stage: Stage) -> None:
    await stage.engine("p1")
    await stage.engine("d1", cuts_in_the_middle)
    other = await stage.engine("d2", cuts_in_the_middle)
    await load_pair(stage, "p1", "d1", "d2")

    answer = await stage.ask(chat(messages=LONG, stream=True))

    assert "stream-interrupted" in answer.events[-1]
    assert len(other.requests) <= 1


async def test_a_client_that_leaves_during_prefill_frees_both_engines(stage: Stage) -> None:
    prefill, decode = await stage.engine("p1", hangs), await stage.engine("d1", answers)
    await load_pair(stage, "p1", "d1")

    async with RawClient(stage.router.port) as client:
        headers = {"authorization": f"Bearer {SECRET}"}
        await client.send(message("POST", CHAT, chat(messages=LONG), headers=headers))
        async with asyncio.timeout(5):
            while not prefill.requests:
                await asyncio.sleep(0.005)

    async with asyncio.timeout(5):
        await prefill.gone.wait()
    await stage.no_leases()
    assert not decode.requests
    assert (await stage.usage(1))[0]["outcome"] == "aborted"


async def test_a_client_may_not_send_an_engine_to_fetch_kv(stage: Stage) -> None:
    engine = await stage.engine("d1")
    await stage.load()
    escaped = json.dumps(chat()).replace(
        MODEL, f'{MODEL}","kv_transfer\\u005fparams":{{"x":1}},"a":"'
    )

    plain = await stage.ask(chat(kv_transfer_params={"remote_host": "10.0.0.1"}))
    hidden = await stage.ask(escaped.encode())

    assert (plain.status, hidden.status) == (400, 400)
    assert plain.json["error"]["param"] == "kv_transfer_params"
    assert not engine.requests
