"""A document is in force in every process of a router, or in none."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.routing.servers.client import RawClient, request
from tests.routing.servers.running import (
    ADMIN,
    CLIENT,
    Start,
    engine_arguments,
    processes,
    push,
    start_several,
    state_of,
    until_serving,
)
from tests.routing.servers.scripted import CHAT, chat

pytestmark = pytest.mark.processes


async def test_a_document_reaches_every_process_or_none(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine}, version=2)

    again = await request(
        router.admin_port, "PUT", "/admin/pool-document", b'{"pool": 1}', headers=ADMIN
    )
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(RawClient(router.port)) for _ in range(6)]
        before = [
            (await client.request("POST", CHAT, chat(max_tokens=1), headers=CLIENT)).status
            for client in clients
        ]
        await push(router, {"a": engine}, version=3, keys=[])
        after = [
            (await client.request("POST", CHAT, chat(max_tokens=1), headers=CLIENT)).status
            for client in clients
        ]
    state = await state_of(router)

    assert again.status == 422
    assert (before, after) == ([200] * 6, [401] * 6)
    assert state["documents"][0]["version"] == 3
    assert state["pools"]["main"]["document_version"] == 3


async def test_a_process_that_hangs_refuses_the_document_for_all(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine}, version=2)
    victim = processes(await state_of(router))[1]["pid"]

    os.kill(victim, signal.SIGSTOP)
    try:
        with pytest.raises(AssertionError, match="process-not-ready"):
            await push(router, {"a": engine}, version=3)
    finally:
        os.kill(victim, signal.SIGCONT)
    state = await until_serving(router)

    assert state["documents"][0]["version"] == 2
    await push(router, {"a": engine}, version=4)
