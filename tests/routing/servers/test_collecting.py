"""Cache events reach every process of a router, whoever has the port."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from routing.servers.collecting import Collectors
from tests.routing.servers.client import request
from tests.routing.servers.running import (
    DEADLINE,
    PROCESSES,
    Running,
    Start,
    ask,
    engine_arguments,
    processes,
    push,
    start_several,
    state_of,
    until_serving,
)
from tests.routing.servers.scripted import Engine, Stage, chat, document

pytestmark = pytest.mark.processes

BLOCK = 16
STORED = [
    *("BlockStored", [2**60 + number for number in range(4)], None),
    *(list(range(4 * BLOCK)), BLOCK),
]


@pytest.fixture
async def publisher() -> AsyncIterator["zmq.Socket[bytes]"]:
    """Of an engine that connects."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context.socket(zmq.PUB)
    context.destroy(linger=0)


def free_port() -> int:
    with zmq.Context() as context, context.socket(zmq.PUB) as probe:
        return probe.bind_to_random_port("tcp://127.0.0.1")


async def blocks(router: Running) -> dict[str, float]:
    """Blocks of endpoint `a` that each process knows from events."""
    page = (await request(router.admin_port, "GET", "/metrics")).body.decode()
    found = {}
    for line in page.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("consort_cache_event_blocks{") and 'endpoint="a"' in name:
            found[name.partition('process="')[2][0]] = float(value)
    return found


async def until_known(router: Running) -> float:
    """Blocks of the endpoint, once every process knows the same number of them."""
    async with asyncio.timeout(DEADLINE):
        while True:
            found = await blocks(router)
            (count, *others) = sorted(set(found.values())) or [0.0]
            if len(found) == PROCESSES and count and not others:
                return count
            await asyncio.sleep(0.05)


def endpoints(engine: Running | Engine, **events: Any) -> dict[str, Any]:
    """Changes of a document: endpoint `a` with where its events are."""

    async def nothing(*_: object) -> None:
        raise NotImplementedError

    (spec,) = document([Engine("a", nothing, port=engine.port)]).endpoints
    return {"endpoints": [msgspec.to_builtins(spec) | {"kv_events": events}]}


async def test_every_process_follows_an_engine_that_binds(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    ports = ("--kv-events-port", "0", "--kv-replay-port", "0")
    engine = await launch(*engine_arguments("both", *ports))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine}, prompt_identity={"mode": "engine"})

    answer = await ask(router, chat(messages=[{"role": "user", "content": "A prompt. " * 200}]))

    assert await until_known(router) >= answer.json["usage"]["prompt_tokens"] // BLOCK > 0


async def test_a_port_of_one_process_serves_all_and_is_bound_again_after_its_death(
    launch: Start, tmp_path: Path, token_file: Path, publisher: "zmq.Socket[bytes]"
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    port = free_port()
    changes = endpoints(engine, endpoint=f"tcp://*:{port}", topic="kv@a@")
    await push(router, {"a": engine}, **changes)
    publisher.connect(f"tcp://127.0.0.1:{port}")
    payload = msgspec.msgpack.encode([1.0, [STORED], 0])

    async def publish() -> None:
        """The same number until the subscription has arrived at the publisher."""
        while True:
            publisher.send_multipart([b"kv@b@m", bytes(8), payload])
            publisher.send_multipart([b"kv@a@m", bytes(8), payload])
            await asyncio.sleep(0.05)

    publishing = asyncio.create_task(publish())
    assert await until_known(router) == 4
    first = processes(await state_of(router))[0]
    os.kill(first["pid"], signal.SIGKILL)
    await until_serving(router, other_than={first["pid"]})
    assert await until_known(router) == 4
    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)


async def test_a_port_that_is_taken_is_a_finding_and_followed_once_it_is_free(
    stage: Stage, publisher: "zmq.Socket[bytes]"
) -> None:
    engine = await stage.engine("a")
    holder = await asyncio.start_server(lambda *_: None, "0.0.0.0", 0)  # noqa: S104 - what the router asks for
    port = holder.sockets[0].getsockname()[1]

    await stage.load(**endpoints(engine, endpoint=f"tcp://*:{port}"))
    async with asyncio.timeout(DEADLINE):
        while not await findings(stage):
            await asyncio.sleep(0.02)
    (told,) = await findings(stage)
    holder.close()
    await holder.wait_closed()

    assert f"tcp://*:{port} cannot be bound" in told
    async with asyncio.timeout(DEADLINE):
        while await findings(stage):
            await asyncio.sleep(0.02)


async def findings(stage: Stage) -> list[str]:
    found = (await stage.admin("GET", "/admin/state")).json["pools"]["main"]["findings"]
    return [one["message"] for one in found if one["code"] == "no-cache-events"]


def test_what_another_process_hears_at_an_address_that_nobody_follows_is_left_out() -> None:
    Collectors().hear("tcp://*:5557", [b"kv@a@m", bytes(8), b""])
