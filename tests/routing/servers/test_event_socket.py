"""ZeroMQ sockets on the event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import zmq

from routing.servers.event_socket import EventSocket


@pytest.fixture
async def context() -> AsyncIterator["zmq.Context[Any]"]:
    made: zmq.Context[Any] = zmq.Context()
    yield made
    made.destroy(linger=0)


async def becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_messages_come_in_order_and_stop_when_nobody_wants_more(
    context: "zmq.Context[Any]",
) -> None:
    taken: list[bytes] = []

    def take(frames: list[bytes]) -> bool:
        taken.append(frames[0])
        return len(taken) % 10 != 0

    sender = context.socket(zmq.PUSH)
    port = sender.bind_to_random_port("tcp://127.0.0.1")
    socket = EventSocket(context, zmq.PULL, take)
    socket.connect(f"tcp://127.0.0.1:{port}")
    for number in range(25):
        sender.send(bytes([number]))

    await becomes(lambda: len(taken) == 10)
    await asyncio.sleep(0.02)
    assert len(taken) == 10
    socket.resume()
    await becomes(lambda: len(taken) == 20)
    socket.resume()
    await becomes(lambda: len(taken) == 25)

    assert taken == [bytes([number]) for number in range(25)]
    socket.close()
    socket.close()
    sender.close(linger=0)


async def test_each_connection_is_told(context: "zmq.Context[Any]") -> None:
    connected: list[int] = []
    publisher = context.socket(zmq.PUB)
    publisher.linger = 0
    port = publisher.bind_to_random_port("tcp://127.0.0.1")
    socket = EventSocket(
        context, zmq.SUB, lambda frames: True, on_connect=lambda: connected.append(1)
    )
    socket.subscribe("")
    socket.connect(f"tcp://127.0.0.1:{port}")
    await becomes(lambda: len(connected) == 1)

    publisher.close()
    again = context.socket(zmq.PUB)
    async with asyncio.timeout(10):
        while True:
            try:
                again.bind(f"tcp://127.0.0.1:{port}")
                break
            except zmq.ZMQError:
                await asyncio.sleep(0.02)

    await becomes(lambda: len(connected) == 2)
    socket.close()
    again.close(linger=0)


async def test_an_address_that_cannot_be_used_is_an_error(context: "zmq.Context[Any]") -> None:
    socket = EventSocket(context, zmq.SUB, lambda frames: True)

    with pytest.raises(zmq.ZMQError):
        socket.connect("tcp://no-port")

    socket.close()
