"""SGLang's pairs: both legs at once, under one room, and the decode leg's answer."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import RawClient, message
from tests.routing.servers.scripted import (
    CHAT,
    SECRET,
    Engine,
    Script,
    Stage,
    answer_body,
    chat,
    cuts,
    cuts_in_the_middle,
    document,
    hangs,
    status_script,
    stream,
)

LONG = [{"role": "user", "content": "A long prompt. " * 2000}]


class Rooms:
    """Where the scripted ends of pairs meet: decode waits for the prefill of its room."""

    def __init__(self) -> None:
        self._ready: dict[int, asyncio.Event] = {}
        self._taken: dict[int, asyncio.Event] = {}
        self.answered: list[int] = []
        """Rooms in which the prefill leg came to its end."""

    def prefill(self, *, lingers: float = 0.0) -> Script:
        async def script(engine: Engine, received: HttpRequest, client: Connection) -> None:
            room = json.loads(received.body)["bootstrap_room"]
            self._event(self._ready, room).set()
            await self._event(self._taken, room).wait()
            await asyncio.sleep(lingers)
            self.answered.append(room)
            client.respond(200, answer_body(engine.name))

        return script

    async def decode(self, engine: Engine, received: HttpRequest, client: Connection) -> None:
        body = json.loads(received.body)
        room = body["bootstrap_room"]
        await self._event(self._ready, room).wait()
        self._event(self._taken, room).set()
        if body.get("stream"):
            await stream(engine, received, client)
        else:
            client.respond(200, answer_body(engine.name))

    def _event(self, events: dict[int, asyncio.Event], room: int) -> asyncio.Event:
        return events.setdefault(room, asyncio.Event())


async def load(stage: Stage, **more: Any) -> None:
    """Push the stage's engines as SGLang ones; their role is in their name."""
    roles = {name: "prefill" if name[0] == "p" else "decode" for name in stage.engines}
    rules = {"protocol": "sglang", "warm_up": False}
    fields = {"roles": roles, "disaggregation": rules} | more
    pool: dict[str, Any] = msgspec.to_builtins(document([*stage.engines.values()], **fields))
    for endpoint in pool["endpoints"]:
        endpoint["engine"] = "sglang"
        endpoint["kv_contract"]["engine"] = "sglang"
        if endpoint["role"] == "prefill":
            endpoint["bootstrap_port"] = 9321
    answer = await stage.push(json.dumps(pool).encode())
    assert answer.status == 200, answer.body


async def ends_of(stage: Stage) -> dict[str, str | None]:
    state = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]
    return {one["id"]: one["breaker"]["last_failure"] for one in state["endpoints"]}


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
async def test_both_legs_get_one_body_and_the_client_the_decode_answer(
    stage: Stage, *, is_stream: bool
) -> None:
    rooms = Rooms()
    prefill = await stage.engine("p1", rooms.prefill())
    decode = await stage.engine("d1", rooms.decode)
    await load(stage)

    answer = await stage.ask(chat(messages=LONG, stream=is_stream))

    assert answer.status == 200
    assert b"from" in answer.body
    assert b"d1" in answer.body
    assert prefill.requests == decode.requests
    body = prefill.requests[0]
    assert (body["bootstrap_host"], body["bootstrap_port"]) == ("127.0.0.1", 9321)
    assert 0 <= body["bootstrap_room"] < 2**63
    assert prefill.headers[0][b"x-request-id"] == decode.headers[0][b"x-request-id"]
    await stage.no_leases()
    (used,) = await stage.usage(1)
    assert (used["endpoint"], used["prefill_endpoint"]) == ("d1", "p1")


async def test_rooms_differ(stage: Stage) -> None:
    rooms = Rooms()
    prefill = await stage.engine("p1", rooms.prefill())
    await stage.engine("d1", rooms.decode)
    await load(stage)

    await asyncio.gather(*(stage.ask(chat(messages=LONG)) for _ in range(20)))

    assert len({body["bootstrap_room"] for body in prefill.requests}) == 20


async def test_a_prefill_leg_that_still_sends_is_not_ended_with_the_answer(stage: Stage) -> None:
    rooms = Rooms()
    prefill = await stage.engine("p1", rooms.prefill(lingers=0.3))
    await stage.engine("d1", rooms.decode)
    await load(stage)

    answer = await stage.ask(chat(messages=LONG))
    at_answer = list(rooms.answered)
    async with asyncio.timeout(5):
        while not rooms.answered:
            await asyncio.sleep(0.01)

    assert answer.status == 200
    assert at_answer == []
    assert not prefill.gone.is_set()
    async with asyncio.timeout(5):
        while stage.router.state.leftovers:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "fails", [cuts, status_script(500), status_script(503)], ids=["cuts", "500", "503"]
)
async def test_a_prefill_leg_that_fails_first_ends_the_decode_leg(
    stage: Stage, fails: Script
) -> None:
    rooms = Rooms()
    await stage.engine("p1", fails)

    async def decodes(engine: Engine, received: HttpRequest, client: Connection) -> None:
        if b"bootstrap_room" in received.body:
            await rooms.decode(engine, received, client)
        else:
            client.respond(200, answer_body("itself"))

    decode = await stage.engine("d1", decodes)
    await load(stage)

    answer = await stage.ask(chat(messages=LONG))

    assert (answer.status, b"itself" in answer.body) == (200, True)
    async with asyncio.timeout(5):
        await decode.gone.wait()
    assert stage.leases_open == 0
    assert (await ends_of(stage))["d1"] is None


async def test_a_decode_leg_that_fails_ends_the_prefill_leg_and_another_pair_is_tried(
    stage: Stage,
) -> None:
    rooms = Rooms()
    first = await stage.engine("p1", rooms.prefill())
    bad, good = (
        await stage.engine("d1", status_script(500)),
        await stage.engine("d2", rooms.decode),
    )
    await load(stage)

    statuses = [(await stage.ask(chat(messages=LONG))).status for _ in range(2)]

    assert statuses == [200, 200]
    assert bad.requests
    assert len(good.requests) == 2
    async with asyncio.timeout(5):
        await first.gone.wait()
    assert stage.leases_open == 0


async def test_a_clients_mistake_found_by_a_prefill_leg_is_passed_on(stage: Stage) -> None:
    await stage.engine("p1", status_script(400, b'{"error":{"message":"too long"}}'))
    decode = await stage.engine("d1", hangs)
    await load(stage)

    answer = await stage.ask(chat(messages=LONG))

    assert (answer.status, answer.json["error"]["message"]) == (400, "too long")
    async with asyncio.timeout(5):
        await decode.gone.wait()
    assert (await ends_of(stage)) == {"p1": None, "d1": None}


@pytest.mark.lesson("S02")
async def test_a_client_that_leaves_frees_both_engines(stage: Stage) -> None:
    prefill, decode = await stage.engine("p1", hangs), await stage.engine("d1", hangs)
    await load(stage)

    async with RawClient(stage.router.port) as client:
        headers = {"authorization": f"Bearer {SECRET}"}
        await client.send(message("POST", CHAT, chat(messages=LONG, stream=True), headers=headers))
        async with asyncio.timeout(5):
            while not (prefill.requests and decode.requests):
                await asyncio.sleep(0.005)

    async with asyncio.timeout(5):
        await prefill.gone.wait()
        await decode.gone.wait()
    await stage.no_leases()


@pytest.mark.lesson("B10")
async def test_a_decode_leg_that_breaks_later_ends_the_stream_honestly(stage: Stage) -> None:
    rooms = Rooms()
    await stage.engine("p1", rooms.prefill())

    async def breaks(engine: Engine, received: HttpRequest, client: Connection) -> None:
        room = json.loads(received.body)["bootstrap_room"]
        rooms._event(rooms._taken, room).set()
        await cuts_in_the_middle(engine, received, client)

    await stage.engine("d1", breaks)
    await load(stage)

    answer = await stage.ask(chat(messages=LONG, stream=True))

    assert "stream-interrupted" in answer.events[-1]
    assert (await stage.usage(1))[0]["outcome"] == "error"


async def test_a_pairs_protocol_fits_its_engines(stage: Stage) -> None:
    await stage.engine("p1")
    await stage.engine("d1")
    pool: dict[str, Any] = msgspec.to_builtins(
        document([*stage.engines.values()], roles={"p1": "prefill", "d1": "decode"})
    )
    pool["disaggregation"] = {"protocol": "sglang"}

    answer = await stage.push(json.dumps(pool).encode())

    assert answer.status == 422
    assert answer.json["pointer"] == "/disaggregation/protocol"
