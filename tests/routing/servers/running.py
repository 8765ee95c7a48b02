"""Routers and engines as processes, and what tests ask of them."""

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from routing.core.document import encode_document
from tests.routing.servers.client import Answer, RawClient, message, request
from tests.routing.servers.scripted import ADMIN_TOKEN, CHAT, MODEL, SECRET, Engine, chat, document

ADMIN = {"authorization": f"Bearer {ADMIN_TOKEN}"}
CLIENT = {"authorization": f"Bearer {SECRET}"}


class Running:
    """A process of ours that told its ports."""

    def __init__(self, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self.process = process
        self.ready = ready
        self.port: int = ready["port"]
        self.admin_port: int = ready.get("admin_port", 0)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(15):
            return await self.process.wait()


Start = Callable[..., Awaitable[Running]]


@asynccontextmanager
async def starter() -> AsyncIterator[Start]:
    """Start processes; what is left of them is killed at the end."""
    started: list[asyncio.subprocess.Process] = []

    async def run(*arguments: str) -> Running:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *arguments, stdout=asyncio.subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        async with asyncio.timeout(20):
            line = await process.stdout.readline()
        if not line:
            raise ChildProcessError(await process.wait())
        return Running(process, json.loads(line))

    try:
        yield run
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
                await process.wait()


def router_arguments(folder: Path, token: Path, *more: str) -> list[str]:
    return [
        *("routing.servers", "--name", "r1", "--port", "0", "--admin-port", "0"),
        *("--state-dir", str(folder), "--admin-token-file", str(token), *more),
    ]


def engine_arguments(role: str, *more: str, speed: float = 20) -> list[str]:
    return [
        *("routing.testbed.engine", "--port", "0", "--model", MODEL, "--speed", str(speed)),
        *("--accelerator", "amd-mi325x", "--role", role, *more),
    ]


async def push(router: Running, engines: dict[str, Running], **changes: Any) -> None:
    """Send a document with the engines' ports; the roles are in their names."""

    async def nothing(*_: object) -> None:
        raise NotImplementedError

    specs = [Engine(name, nothing, port=engine.port) for name, engine in engines.items()]
    raw = encode_document(document(specs, **changes))
    answer = await request(router.admin_port, "PUT", "/admin/pool-document", raw, headers=ADMIN)
    assert answer.status == 200, answer.body


async def ask(router: Running, body: dict[str, Any]) -> Answer:
    return await request(router.port, "POST", CHAT, body, headers=CLIENT)


async def state_of(router: Running) -> dict[str, Any]:
    return (await request(router.admin_port, "GET", "/admin/state", headers=ADMIN)).json


async def inflight_at(router: Running, endpoint_id: str) -> int:
    endpoints = (await state_of(router))["pools"]["main"]["endpoints"]
    return sum(one["inflight_requests"] for one in endpoints if one["id"] == endpoint_id)


async def segments(router: Running) -> list[dict[str, Any]]:
    path = "/admin/usage-segments?after=0&limit=1000"
    return (await request(router.admin_port, "GET", path, headers=ADMIN)).json["segments"]


async def events(router: Running, count: int) -> list[dict[str, Any]]:
    """Usage events once at least so many are delivered."""
    async with asyncio.timeout(10):
        while True:
            found = [event for segment in await segments(router) for event in segment["events"]]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


PROCESSES = 3
DEADLINE = 20.0


async def start_several(start: Start, folder: Path, token: Path, *more: str) -> Running:
    """A router of three processes."""
    return await start(*router_arguments(folder, token, "--processes", str(PROCESSES), *more))


def processes(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that serve."""
    return [process for process in state["processes"] if process["state"] == "ready"]


async def until_serving(router: Running, *, other_than: set[int] | None = None) -> dict[str, Any]:
    """State once all processes serve, none of them one of `other_than`."""
    async with asyncio.timeout(DEADLINE):
        while True:
            state = await state_of(router)
            pids = {process["pid"] for process in processes(state)}
            if len(pids) == PROCESSES and not pids & (other_than or set()):
                return state
            await asyncio.sleep(0.05)


async def keep_asking(router: Running, name: str, answered: list[str]) -> None:
    """Ask on one connection after the other; `answered` gets the ids of complete answers."""
    for life in itertools.count():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with RawClient(router.port) as client:
                for number in itertools.count():
                    headers = CLIENT | {"x-request-id": f"{name}-{life}-{number}"}
                    await client.send(message("POST", CHAT, chat(max_tokens=2), headers=headers))
                    if (await client.answer()).status == 200:
                        answered.append(headers["x-request-id"])
