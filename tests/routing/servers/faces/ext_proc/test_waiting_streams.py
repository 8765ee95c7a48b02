"""Streams whose request waits for its turn, or is ended for another one."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.picks import Picks
from tests.routing.servers.faces.ext_proc.gateway import (
    FULL_DUPLEX,
    NONE,
    Gateway,
    destination,
    kinds,
    request_body,
    request_headers,
    response_body,
    response_headers,
    set_headers,
    streamed,
)
from tests.routing.servers.scripted import Stage, chat, event
from tests.routing.servers.valves import GATE, Valve, grants, queued, stuffed, until, waiting

BODY = json.dumps(chat(stream=True)).encode()


@asynccontextmanager
async def waits(stage: Stage, valve: Valve, **headers: str) -> AsyncIterator[Gateway]:
    """A stream whose request waits, until the end of the block."""
    async with stuffed(stage, valve):
        gateway = Gateway(Face(Picks(stage.router.state)))
        gateway.tell(request_headers(**headers), request_body(BODY))
        assert gateway.got == []
        assert waiting(stage) == 1
        yield gateway


async def test_a_request_waits_and_is_answered_in_its_turn(stage: Stage, valve: Valve) -> None:
    async with waits(stage, valve) as gateway:
        pass
    await until(lambda: len(gateway.got) == 2)

    assert destination(gateway.got[0]).startswith("127.0.0.1:")
    assert streamed(gateway.got) == [BODY]


@pytest.mark.lesson("S02")
@pytest.mark.parametrize("ticks", [0, 1])
async def test_a_client_that_leaves_while_it_waits_gives_everything_back(
    stage: Stage, valve: Valve, ticks: int
) -> None:
    async with waits(stage, valve) as gateway:
        for _ in range(ticks):
            await asyncio.sleep(0)
        gateway.leave()
        await until(lambda: waiting(stage) == 0)

    (used,) = await stage.usage(1)
    assert (used["outcome"], used["status"]) == ("aborted", 499)
    assert (stage.leases_open, grants(stage)) == (0, 0)
    assert (gateway.got, gateway.status) == ([], 0)


async def test_a_gateway_that_gives_up_waiting_answers_itself(stage: Stage, valve: Valve) -> None:
    async with waits(stage, valve) as gateway:
        answers = gateway.tell(response_headers(504, is_last=True))
        await until(lambda: waiting(stage) == 0)

    assert kinds(answers) == ["response_headers"]
    assert stage.leases_open == 0
    assert len(gateway.got) == 1


async def test_more_of_the_request_while_it_waits_is_out_of_order(
    stage: Stage, valve: Valve
) -> None:
    async with waits(stage, valve) as gateway:
        gateway.tell(request_body(BODY))
        await until(lambda: waiting(stage) == 0)

    assert gateway.status == 3
    assert stage.leases_open == 0


async def test_a_wait_that_is_over_is_429_with_its_reason(stage: Stage, valve: Valve) -> None:
    async with waits(stage, valve, x_llm_d_inference_ttl="100ms") as gateway:
        await until(lambda: bool(gateway.got))

    told = gateway.got[0].immediate_response
    assert told.status.code == 429
    assert set_headers(told.headers)["x-llm-d-request-dropped-reason"] == "rejected-ttl-expired"
    assert gateway.status == 0


async def test_a_router_that_shuts_down_refuses_those_that_wait(stage: Stage, valve: Valve) -> None:
    async with waits(stage, valve) as gateway:
        stage.router.state.is_draining = True
        await until(lambda: bool(gateway.got))

    told = set_headers(gateway.got[0].immediate_response.headers)
    assert told["x-llm-d-request-dropped-reason"] == "rejected-shutting-down"


async def evicted(stage: Stage, *, answer_mode: int, steps: int) -> Gateway:
    """A running sheddable request that has to go for another one."""
    await stage.load(admission=GATE | {"evict_sheddable": True, "saturation_seconds": 0.05})
    gateway = Gateway(Face(Picks(stage.router.state)))
    gateway.tell(
        request_headers(answer_mode=answer_mode, x_consort_priority="-1"), request_body(BODY)
    )
    answer = [
        response_headers(content_type="text/event-stream"),
        response_body(event({"content": "a"}), is_last=False),
    ]
    gateway.tell(*answer[:steps])
    assert stage.leases_open == 1
    before = len(gateway.got)
    pool = next(iter(stage.router.state.directory.pools.values()))
    pool.router._known.table.prefill_tokens[0] += 20_000
    [other] = await queued(stage, "other")
    await until(lambda: len(gateway.got) > before)
    pool.router._known.table.prefill_tokens[0] -= 20_000
    other.cancel()
    return gateway


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_request_is_evicted_before_its_answer(
    stage: Stage, valve: Valve, steps: int
) -> None:
    gateway = await evicted(stage, answer_mode=NONE, steps=steps)

    told = gateway.got[-1].immediate_response
    assert told.status.code == 429
    assert set_headers(told.headers)["x-llm-d-request-dropped-reason"] == "evicted-priority"
    assert gateway.status == 0
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"]) == ("error", 200 if steps else 429)


@pytest.mark.lesson("B10")
async def test_a_stream_that_is_evicted_ends_with_an_error_event(
    stage: Stage, valve: Valve
) -> None:
    gateway = await evicted(stage, answer_mode=FULL_DUPLEX, steps=2)

    last = gateway.got[-1].response_body.response.body_mutation.streamed_response
    assert b'"code":"pool-saturated"' in last.body
    assert last.end_of_stream
    assert gateway.status == 0
    # What the engine still sends is passed over.
    assert gateway.tell(response_body(event({"content": "b"}), is_last=False)) == []
    used = (await stage.usage(1))[0]
    assert (used["outcome"], used["status"]) == ("error", 200)


async def test_a_request_that_has_ended_is_not_evicted(stage: Stage, valve: Valve) -> None:
    await stage.load(admission=GATE | {"evict_sheddable": True, "saturation_seconds": 0.05})
    gateway = Gateway(Face(Picks(stage.router.state)))
    gateway.tell(
        request_headers(answer_mode=FULL_DUPLEX, x_consort_priority="-1"), request_body(BODY)
    )
    room = stage.router.state.rooms["main"]
    assert len(room.running) == 1

    gateway.tell(response_headers(), response_body(b"{}"))

    assert len(room.running) == 0
