"""KV events on the wire: frames, numbering, replay, and what a cleared cache tells."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
import zmq
import zmq.asyncio

from routing.testbed.engine import Engine
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import completion, sample, shape, url

SUFFIX = 8


@pytest.fixture
async def sockets() -> AsyncIterator[zmq.asyncio.Context]:
    """A ZeroMQ context whose sockets are closed after the test."""
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


async def test_batches_arrive_numbered_from_zero_in_the_captured_form(
    start_engine: StartEngine, client: httpx.AsyncClient, sockets: zmq.asyncio.Context
) -> None:
    engine = await start_engine(kv_events_port=0, topic="kv@a@granite")
    subscriber = await subscribe(sockets, engine, client)
    await client.post(url(engine, "/v1/completions"), json=completion("x" * 400, max_tokens=1))

    topic, number, payload = await receive(subscriber)

    batch = msgspec.msgpack.decode(payload)
    captured = sample("kv-events")[0]["decoded"]
    assert topic == b"kv@a@granite"
    assert int.from_bytes(number, "big") == 1
    assert [type(part) for part in batch] == [type(part) for part in captured]
    assert shape(batch[1][0]) | {"parent_block_hash": None} == shape(captured[1][0]) | {
        "parent_block_hash": None
    }


async def test_replay_gives_what_was_missed_and_an_end_mark(
    start_engine: StartEngine, client: httpx.AsyncClient, sockets: zmq.asyncio.Context
) -> None:
    engine = await start_engine(kv_events_port=0)
    for letter in "abc":
        body = completion(letter * 400, max_tokens=1)
        await client.post(url(engine, "/v1/completions"), json=body)
    dealer = sockets.socket(zmq.DEALER)
    assert engine.publisher is not None
    dealer.connect(f"tcp://127.0.0.1:{engine.publisher.replay_port}")

    await dealer.send_multipart([b"", (1).to_bytes(SUFFIX, "big")])
    answers = [await receive(dealer) for _ in range(3)]

    assert [len(frames) for frames in answers] == [4, 4, 4]
    assert [int.from_bytes(f[2], "big", signed=True) for f in answers] == [1, 2, -1]
    assert answers[-1][3] == b""


async def test_an_idle_engine_tells_of_a_cleared_cache_with_its_next_step(
    start_engine: StartEngine, client: httpx.AsyncClient, sockets: zmq.asyncio.Context
) -> None:
    engine = await start_engine(kv_events_port=0)
    subscriber = await subscribe(sockets, engine, client)
    await client.post(url(engine, "/reset_prefix_cache"))
    await client.post(url(engine, "/v1/completions"), json=completion("x" * 400, max_tokens=1))

    _, _, payload = await receive(subscriber)

    kinds = [event["type"] for event in msgspec.msgpack.decode(payload)[1]]
    assert kinds == ["AllBlocksCleared", "BlockStored"]


async def test_sources_are_told_in_the_captured_shape(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine(kv_events_port=0)

    answer = await client.get(url(engine, "/kv_event_sources"))

    assert shape(answer.json()) == shape(sample("kv_event_sources")["response"])


async def test_a_restarted_publisher_numbers_from_zero_at_the_same_port(
    start_engine: StartEngine, client: httpx.AsyncClient, sockets: zmq.asyncio.Context
) -> None:
    engine = await start_engine(kv_events_port=0)
    assert engine.publisher is not None
    port = engine.publisher.port
    await first_batch(engine, client)

    engine.restart_publisher()

    assert engine.publisher.port == port
    subscriber = await subscribe(sockets, engine, client)
    await client.post(url(engine, "/v1/completions"), json=completion("y" * 400, max_tokens=1))
    _, number, _ = await receive(subscriber)
    # The first batch of the new life: what `subscribe` asked for is cached and publishes nothing.
    assert int.from_bytes(number, "big") == 0


async def subscribe(
    sockets: zmq.asyncio.Context, engine: Engine, client: httpx.AsyncClient
) -> zmq.asyncio.Socket:
    """A subscriber that has already got its first batch, so that none is missed after it."""
    assert engine.publisher is not None
    subscriber = sockets.socket(zmq.SUB)
    subscriber.subscribe(b"")
    subscriber.connect(f"tcp://127.0.0.1:{engine.publisher.port}")
    publish = asyncio.create_task(first_batch(engine, client))
    async with asyncio.timeout(10):
        while not await subscriber.poll(20):
            engine.publisher._pub.send_multipart([b"hello", b"", b""])
    await publish
    while await subscriber.poll(50):
        await subscriber.recv_multipart()
    return subscriber


async def first_batch(engine: Engine, client: httpx.AsyncClient) -> None:
    """Make the engine publish batch 0."""
    await client.post(url(engine, "/v1/completions"), json=completion("w" * 64, max_tokens=1))


async def receive(socket: zmq.asyncio.Socket) -> list[bytes]:
    """The next message, within ten seconds."""
    async with asyncio.timeout(10):
        frames: list[bytes] = await socket.recv_multipart()
    return frames
