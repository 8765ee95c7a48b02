"""Connections spread evenly over the processes of a router."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.routing.servers.client import RawClient, request
from tests.routing.servers.running import (
    CLIENT,
    DEADLINE,
    Start,
    engine_arguments,
    events,
    processes,
    push,
    start_several,
    state_of,
)
from tests.routing.servers.scripted import CHAT, chat

pytestmark = pytest.mark.processes


async def test_connections_are_spread_evenly_and_figures_added(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine})

    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(RawClient(router.port)) for _ in range(9)]
        for client in clients:
            answer = await client.request("POST", CHAT, chat(max_tokens=2), headers=CLIENT)
            assert answer.status == 200
        async with asyncio.timeout(DEADLINE):
            while True:
                state = await state_of(router)
                if state["requests"]["total"] == 9:
                    break
                await asyncio.sleep(0.05)
        page = (await request(router.admin_port, "GET", "/metrics")).body.decode()
    used = await events(router, 9)

    assert [process["connections"] for process in processes(state)] == [3, 3, 3]
    assert [process["requests"] for process in processes(state)] == [3, 3, 3]
    assert state["requests"]["by_status"] == {"200": 9}
    assert 'consort_requests_total{outcome="ok",pool="main",status="200"} 9.0' in page
    assert "consort_processes_serving 3.0" in page
    assert [event["sequence"] for event in used] == list(range(1, 10))
    assert len(state["documents"]) == 1
