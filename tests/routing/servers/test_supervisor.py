"""Processes are kept alive, and end with their supervisor."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.routing.servers.client import request
from tests.routing.servers.running import (
    ADMIN,
    DEADLINE,
    PROCESSES,
    Start,
    ask,
    engine_arguments,
    events,
    processes,
    push,
    start_several,
    state_of,
    until_serving,
)
from tests.routing.servers.scripted import chat

pytestmark = pytest.mark.processes


async def test_a_killed_process_is_started_again_and_knows_documents_and_drains(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engines = {name: await launch(*engine_arguments("both")) for name in ("a", "b")}
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, engines)
    drained = await request(router.admin_port, "POST", "/admin/endpoints/a/drain", headers=ADMIN)
    pids = {process["pid"] for process in processes(await state_of(router))}

    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    state = await until_serving(router, other_than=pids)
    answers = [await ask(router, chat(max_tokens=2)) for _ in range(12)]
    used = await events(router, 12)

    assert drained.json == {"endpoint": "a", "state": "draining", "pools": ["main"]}
    assert state["restarts"] == PROCESSES
    assert {answer.status for answer in answers} == {200}
    assert {event["endpoint"] for event in used} == {"b"}


async def test_with_the_supervisor_its_processes_end(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    router = await start_several(launch, tmp_path / "state", token_file)
    pids = [process["pid"] for process in (await state_of(router))["processes"]]

    await router.end(signal.SIGKILL)

    async with asyncio.timeout(DEADLINE):
        while any(Path(f"/proc/{pid}/cmdline").exists() and _lives(pid) for pid in pids):
            await asyncio.sleep(0.02)


def _lives(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
