"""The server as gRPC's own library sees it."""

import asyncio
from typing import Any

import grpc
import pytest

from tests.routing.servers.faces.http2.peer import ECHO, Echoes


def stub(channel: grpc.aio.Channel) -> Any:
    return channel.stream_stream(ECHO)


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_380, 100_000, 5_000_000])
async def test_messages_of_any_size_come_back(echoes: Echoes, size: int) -> None:
    options = [("grpc.max_receive_message_length", 2**26)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{echoes.port}", options) as channel:
        call = stub(channel)()
        sent = [b"a" * size, b"b" * size]
        for message in sent:
            await call.write(message)
        got = [await call.read() for _ in sent]
        await call.done_writing()

        assert await call.read() is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
    assert got == sent


async def test_many_calls_at_once_on_one_connection(echoes: Echoes) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{echoes.port}") as channel:

        async def ask(number: int) -> bool:
            call = stub(channel)()
            message = str(number).encode() * 1000
            await call.write(message)
            is_same = await call.read() == message
            await call.done_writing()
            return is_same and await call.read() is grpc.aio.EOF

        answers = await asyncio.gather(*(ask(number) for number in range(200)))

    assert all(answers)
    assert len(echoes.calls) == 200


async def test_a_status_and_its_sentence_arrive(echoes: Echoes) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{echoes.port}") as channel:
        call = channel.unary_unary("/no.Such/Method")(b"")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert refused.value.details() == "There is no method /no.Such/Method."


async def test_a_cancelled_call_is_closed(echoes: Echoes) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{echoes.port}") as channel:
        call = stub(channel)()
        await call.write(b"x")
        await call.read()
        call.cancel()
        async with asyncio.timeout(5):
            while not echoes.calls[0].is_closed:
                await asyncio.sleep(0.01)
