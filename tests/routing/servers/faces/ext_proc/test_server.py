"""The picker's port over real gRPC."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from routing.servers.faces.ext_proc.messages_pb2 import (
    HealthRequest,
    HealthResponse,
    ProcessingRequest,
    ProcessingResponse,
)
from routing.servers.faces.ext_proc.server import CHECK, PROCESS
from routing.servers.faces.ports import FaceOptions
from tests.routing.servers.faces.ext_proc.gateway import (
    BUFFERED,
    destination,
    kinds,
    request_body,
    request_headers,
    response_body,
    response_headers,
    streamed,
)
from tests.routing.servers.scripted import Stage, answer_body, chat

LONG = json.dumps(chat(messages=[{"role": "user", "content": "word " * 200_000}])).encode()
OPTIONS = [("grpc.max_receive_message_length", 2**26), ("grpc.max_send_message_length", 2**26)]


@pytest.fixture
async def opened(stage: Stage) -> dict[str, int]:
    """The stage's router again, with ports for gateways."""
    await stage.router.stop()
    await stage.start_router(faces=FaceOptions(ext_proc=0, health=0))
    await stage.engine("a")
    await stage.load()
    return stage.router.face_ports[0]


@pytest.fixture
async def channel(opened: dict[str, int]) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{opened['ext_proc']}", OPTIONS) as channel:
        yield channel


def call(channel: grpc.aio.Channel) -> Any:
    return channel.stream_stream(
        PROCESS,
        request_serializer=ProcessingRequest.SerializeToString,
        response_deserializer=ProcessingResponse.FromString,
    )()


async def test_a_request_and_its_answer_pass(channel: grpc.aio.Channel, stage: Stage) -> None:
    stream = call(channel)
    step = 65_536
    await stream.write(request_headers(answer_mode=4))
    for at in range(0, len(LONG), step):
        await stream.write(request_body(LONG[at : at + step], is_last=at + step >= len(LONG)))
    count = 1 + -(-len(LONG) // 62_000)
    got = [await stream.read() for _ in range(count)]
    await stream.write(response_headers())
    await stream.write(response_body(answer_body("a")))
    more = [await stream.read() for _ in range(2)]
    await stream.done_writing()

    assert await stream.read() is grpc.aio.EOF
    assert await stream.code() is grpc.StatusCode.OK
    assert b"".join(streamed(got)) == LONG
    assert destination(got[0]) == f"127.0.0.1:{stage.engines['a'].port}"
    assert kinds(more) == ["response_headers", "response_body"]
    await stage.no_leases()


async def test_a_large_body_in_one_message_passes(channel: grpc.aio.Channel) -> None:
    body = json.dumps(chat(messages=[{"role": "user", "content": "x" * 12_000_000}])).encode()
    stream = call(channel)
    await stream.write(request_headers(mode=BUFFERED))
    await stream.read()
    await stream.write(request_body(body))

    assert kinds([await stream.read()]) == ["request_body"]


async def test_a_refusal_ends_the_stream(channel: grpc.aio.Channel) -> None:
    stream = call(channel)
    await stream.write(request_headers(secret=""))
    await stream.write(request_body(b"{}"))

    assert kinds([await stream.read()]) == ["immediate_response"]
    assert await stream.read() is grpc.aio.EOF
    assert await stream.code() is grpc.StatusCode.OK


async def test_a_wrong_order_is_an_invalid_argument(channel: grpc.aio.Channel) -> None:
    stream = call(channel)
    await stream.write(request_body(b"{}"))

    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await stream.read()

    assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "request_body before the headers" in str(ended.value.details())


async def test_a_cancelled_stream_leaves_nothing(channel: grpc.aio.Channel, stage: Stage) -> None:
    stream = call(channel)
    await stream.write(request_headers(mode=BUFFERED))
    await stream.read()
    await stream.write(request_body(json.dumps(chat()).encode()))
    await stream.read()
    assert stage.leases_open == 1

    stream.cancel()

    await stage.no_leases()


async def test_a_flood_of_streams_is_answered_one_by_one(
    channel: grpc.aio.Channel, stage: Stage
) -> None:
    async def ask(number: int) -> str:
        stream = call(channel)
        await stream.write(request_headers(mode=BUFFERED))
        await stream.read()
        await stream.write(request_body(json.dumps(chat(user=str(number))).encode()))
        answer = await stream.read()
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        return kinds([answer])[0]

    answers = await asyncio.gather(*(ask(number) for number in range(300)))

    assert set(answers) == {"request_body"}
    await stage.no_leases()


@pytest.mark.parametrize("port", ["ext_proc", "health"])
@pytest.mark.parametrize(
    ("name", "status"), [("", 1), ("liveness", 1), ("readiness", 1), ("other", 3)]
)
async def test_both_ports_tell_of_health(
    opened: dict[str, int], port: str, name: str, status: int
) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{opened[port]}") as channel:
        ask = channel.unary_unary(
            CHECK,
            request_serializer=HealthRequest.SerializeToString,
            response_deserializer=HealthResponse.FromString,
        )

        assert (await ask(HealthRequest(service=name))).status == status


async def test_the_health_port_picks_nothing(opened: dict[str, int]) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{opened['health']}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call(channel).read()

    assert ended.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_router_that_stops_ends_streams_and_their_books(
    channel: grpc.aio.Channel, stage: Stage
) -> None:
    stream = call(channel)
    await stream.write(request_headers(answer_mode=4))
    await stream.write(request_body(json.dumps(chat()).encode()))
    await stream.read()
    await stream.read()

    await stage.router.stop()

    assert stage.leases_open == 0
    await stage.start_router()
