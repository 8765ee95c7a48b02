"""What a request leaves behind is freed at once, without the collector of cycles.

A ring of objects stays in memory until that collector comes, and each of its visits stops all
streams. Objects are counted here after requests of each kind, good and bad.
"""

import asyncio
import gc
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers import test_bootstrap as pairs
from tests.routing.servers.client import message
from tests.routing.servers.scripted import (
    CHAT,
    SECRET,
    Engine,
    Script,
    Stage,
    answers,
    chat,
    cuts_in_the_middle,
    status_script,
    streams_forever,
)

REQUESTS = 40
FEW = REQUESTS // 4
"""Unreachable objects that the background may make meanwhile; one ring of a request is more."""
DEADLINE = 10.0
Prepare = Callable[[Stage], Awaitable[None]]
HEADERS = {"authorization": f"Bearer {SECRET}", "connection": "close"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """Requests of one kind, and how the unlucky half of them ends."""

    body: dict[str, Any]
    script: Script = answers
    status: str = "200"
    leave_after: int | None = None
    """Bytes of the answer; `None` reads it to its end."""
    continues: bool = False


STREAM = {"stream": True}


async def dies_at_once(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Begins an answer and is gone."""
    client.open_stream(200, content_type=b"text/event-stream")
    client.abort()


CASES = {
    "stream": Case(body=STREAM),
    "whole": Case(body={}),
    "refused-by-the-router": Case(body={"max_tokens": "many"}, status="400"),
    "refused-by-the-engine": Case(body=STREAM, script=status_script(400), status="400"),
    "left-by-the-client": Case(body=STREAM, script=streams_forever, leave_after=900),
    "engine-dies-before-the-stream": Case(body=STREAM, script=dies_at_once, status="503"),
    "engine-dies-in-the-stream": Case(body=STREAM, script=cuts_in_the_middle),
    "stream-goes-on-elsewhere": Case(body=STREAM, script=cuts_in_the_middle, continues=True),
    "engine-fails": Case(body=STREAM, script=status_script(500), status="500"),
}


class EverySecond:
    """An engine that is good in between, so that no breaker opens."""

    def __init__(self, bad: Script, good: Script = answers) -> None:
        self._scripts = (bad, good)
        self._calls = 0

    async def __call__(self, engine: Engine, received: HttpRequest, client: Connection) -> None:
        script = self._scripts[self._calls % 2]
        self._calls += 1
        await script(engine, received, client)


async def ask(stage: Stage, case: Case, *, times: int) -> Counter[str]:
    """Ask one after the other, each on a connection of its own; returns what was answered."""
    raw = message("POST", CHAT, chat(**case.body), headers=HEADERS)
    statuses = Counter([await ask_once(stage, raw, case.leave_after) for _ in range(times)])
    await stage.no_leases()
    return statuses


async def ask_once(stage: Stage, raw: bytes, leave_after: int | None) -> str:
    """Over a bare socket: asyncio's streams leave rings of their own."""
    loop, answer = asyncio.get_running_loop(), b""
    with socket.socket() as client:
        client.settimeout(0)
        async with asyncio.timeout(DEADLINE):
            await loop.sock_connect(client, ("127.0.0.1", stage.router.port))
            await loop.sock_sendall(client, raw)
            while part := await loop.sock_recv(client, 65536):
                answer += part
                if leave_after is not None and len(answer) > leave_after:
                    break
    return answer[9:12].decode()


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def measure(folder: Path, case: Case, prepare: Prepare) -> tuple[Counter[str], int]:
    """Statuses of the requests, and how many objects they left that only the collector frees.

    Routers run in this loop; the transports of asyncio's own are rings.
    """

    async def asked() -> tuple[Counter[str], int]:
        stage = Stage(folder)
        await stage.start_router()
        try:
            await prepare(stage)
            await ask(stage, case, times=4)
            gc.collect()
            return await ask(stage, case, times=REQUESTS), gc.collect()
        finally:
            await stage.stop()

    return uvloop.run(asked())


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_a_request_leaves_no_rings(tmp_path: Path, case: Case) -> None:
    async def prepare(stage: Stage) -> None:
        await stage.engine("a", EverySecond(case.script))
        await stage.engine("b", answers if case.continues else EverySecond(case.script))
        await stage.load(limits={"attempts": 3, "streams_continue": case.continues})

    statuses, left = measure(tmp_path, case, prepare)

    assert statuses[case.status] >= REQUESTS // 4
    assert left <= FEW


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        pytest.param(None, "200", id="good"),
        pytest.param("prefill", "400", id="prefill-refuses"),
        pytest.param("decode", "500", id="decode-fails"),
    ],
)
def test_a_pair_that_works_at_once_leaves_no_rings(
    tmp_path: Path, failing: str | None, status: str
) -> None:
    async def prepare(stage: Stage) -> None:
        rooms, bad = pairs.Rooms(), status_script(int(status))
        good = {"prefill": rooms.prefill(), "decode": rooms.decode}
        scripts = {
            leg: EverySecond(bad, script) if leg == failing else script
            for leg, script in good.items()
        }
        await stage.engine("p1", scripts["prefill"])
        await stage.engine("d1", scripts["decode"])
        await pairs.load(stage, limits={"attempts": 1})

    case = Case(body=STREAM | {"messages": pairs.LONG})

    statuses, left = measure(tmp_path, case, prepare)

    assert statuses[status] >= REQUESTS // 4
    assert left <= FEW
