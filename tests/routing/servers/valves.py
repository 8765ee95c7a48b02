"""An engine whose answers a test lets go, and a pool that is full of work."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import Answer
from tests.routing.servers.scripted import SECRET, Engine, Stage, answer_body, chat, event, key

GATE = {"queue_requests": 100, "saturation_seconds": 0.4, "queue_seconds": 20}
"""A prompt of `LONG` keeps an engine busy for about 0.5 s by the document's speeds: one runs."""
LONG = "word " * 8000


class Valve:
    """An engine's script whose answers a test lets go, one after the other."""

    def __init__(self) -> None:
        self.arrived = 0
        self.order: list[str] = []
        self.gone = 0
        self._gates: list[asyncio.Event] = []

    async def __call__(self, engine: Engine, received: HttpRequest, client: Connection) -> None:
        gate = asyncio.Event()
        self._gates.append(gate)
        self.arrived += 1
        self.order.append(engine.requests[-1].get("user", ""))
        is_stream = bool(engine.requests[-1].get("stream"))
        try:
            if is_stream:
                client.open_stream(200, content_type=b"text/event-stream")
                client.send(event({"role": "assistant", "content": ""}))
            await gate.wait()
        except asyncio.CancelledError:
            self.gone += 1
            raise
        if is_stream:
            client.send(b"data: [DONE]\n\n")
            client.close_stream()
        else:
            client.respond(200, answer_body(engine.name))

    def let_go(self, index: int) -> None:
        self._gates[index].set()

    def let_all_go(self) -> None:
        for gate in self._gates:
            gate.set()


async def until(condition: Any) -> None:
    async with asyncio.timeout(8):
        while not condition():
            await asyncio.sleep(0.005)


def body(name: str, **more: Any) -> dict[str, Any]:
    """A long prompt like no other, so that no cache shortens it. `user` names it."""
    return chat(
        messages=[{"role": "user", "content": f"{name} {LONG}"}], user=name, max_tokens=5, **more
    )


def ask(stage: Stage, name: str, *, secret: str = SECRET, **headers: str) -> asyncio.Task[Answer]:
    return asyncio.create_task(stage.ask(body(name, stream=True), secret=secret, **headers))


def waiting(stage: Stage) -> int:
    return sum(len(pool.router.queue) for pool in stage.router.state.directory.pools.values())


def grants(stage: Stage) -> int:
    return sum(
        pool.router._known.tenants.open_grants()
        for pool in stage.router.state.directory.pools.values()
    )


async def queued(stage: Stage, *names: str, **options: str) -> list[asyncio.Task[Answer]]:
    """Requests that wait, in this order of arrival."""
    tasks = []
    for name in names:
        before = waiting(stage)
        tasks.append(ask(stage, name, **options))
        await until(lambda before=before: waiting(stage) == before + 1)
    return tasks


async def running(stage: Stage, valve: Valve, name: str = "first") -> asyncio.Task[Answer]:
    """A request that has the engine; its prompt counts as not computed."""
    task = ask(stage, name)
    await until(lambda: valve.arrived == 1)
    return task


@contextlib.asynccontextmanager
async def stuffed(stage: Stage, valve: Valve, **changes: Any) -> AsyncIterator[None]:
    """A pool whose engine is full of work until the block ends."""
    changes.setdefault("admission", GATE)
    changes.setdefault("keys", [key("ana", SECRET, highest_priority=100)])
    await stage.load(**changes)
    pool = next(iter(stage.router.state.directory.pools.values()))
    table = pool.router._known.table
    table.prefill_tokens[0] += 20_000
    try:
        yield
    finally:
        table = pool.router._known.table
        if len(table):
            table.prefill_tokens[0] -= 20_000
        pool.router.queue.stir()
