"""Usage of a process is with its supervisor, whatever happens to the process."""

import asyncio
import contextlib
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.routing.servers.client import Answer, RawClient, message, request
from tests.routing.servers.running import (
    CLIENT,
    PROCESSES,
    Start,
    engine_arguments,
    events,
    keep_asking,
    processes,
    push,
    router_arguments,
    start_several,
    state_of,
    until_serving,
)
from tests.routing.servers.scripted import CHAT, SECRET, chat, key

pytestmark = pytest.mark.processes


async def test_a_killed_process_loses_no_usage_older_than_the_window_and_none_is_there_twice(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine})
    answered: list[str] = []
    asking = [
        asyncio.create_task(keep_asking(router, str(number), answered)) for number in range(9)
    ]
    await events(router, 60)
    pids = [process["pid"] for process in processes(await state_of(router))]
    # Events are sent 20 ms after their answer: wait this window out for what is known here.
    safe = list(answered)
    await asyncio.sleep(0.2)

    os.kill(pids[0], signal.SIGKILL)
    os.kill(pids[1], signal.SIGKILL)
    await until_serving(router, other_than=set(pids[:2]))
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    before_end = len(answered)
    await router.end()
    restarted = await launch(*router_arguments(tmp_path / "state", token_file))
    used = await events(restarted, before_end - 40)

    counted = Counter(event["request_id"] for event in used)
    numbers = [event["sequence"] for event in used]
    assert numbers == list(range(1, len(numbers) + 1))
    assert max(counted.values()) == 1
    assert set(safe) <= set(counted)
    # At most what the two were serving within their last 20 ms is missing.
    assert len(set(answered) - set(counted)) <= 40


async def test_at_the_end_running_streams_of_every_process_are_finished(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    folder = tmp_path / "state"
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, folder, token_file)
    await push(router, {"a": engine})

    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(RawClient(router.port)) for _ in range(6)]
        for client in clients:
            body = chat(max_tokens=200, stream=True)
            await client.send(message("POST", CHAT, body, headers=CLIENT))
            await client.head()
        ending = asyncio.create_task(router.end())
        answers = await asyncio.gather(*(_rest(client) for client in clients))
        status = await ending
    again = await launch(*router_arguments(folder, token_file))
    used = await events(again, 6)

    assert status == 0
    assert all(answer.endswith(b"data: [DONE]\n\n") for answer in answers)
    assert [event["completion_tokens"] for event in used] == [200] * 6


async def test_every_process_keeps_what_it_learned_of_speeds(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    folder = tmp_path / "state"
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, folder, token_file)
    await push(router, {"a": engine})
    for _ in range(2 * PROCESSES):
        assert (await request(router.port, "POST", CHAT, chat(), headers=CLIENT)).status == 200

    await router.end()

    kept = [
        json.loads((folder / f"speeds-{number}.json").read_bytes()) for number in range(PROCESSES)
    ]
    assert [list(one["pools"]) for one in kept] == [["main"]] * PROCESSES


async def _rest(client: RawClient) -> bytes:
    chunks = []
    while chunk := await client.chunk():
        chunks.append(chunk)
    return b"".join(chunks)


async def test_a_reservation_is_settled_through_whatever_process_a_client_reaches(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine}, keys=[key("ana", SECRET, may_reserve=True)])

    async def call(path: str, /, **body: Any) -> Answer:
        # A connection of its own, so another process each time.
        return await request(router.port, "POST", path, body, headers=CLIENT)

    async def with_key_alone(name: str) -> int:
        headers = {"x-api-key": SECRET}
        body = {"reservation": name}
        return (await request(router.port, "POST", "/v1/refresh", body, headers=headers)).status

    reserved = await call("/v1/reserve", path=CHAT, body=chat())
    name = reserved.json["reservation"]
    refreshed = [(await call("/v1/refresh", reservation=name)).status for _ in range(6)]
    alone = [await with_key_alone(name) for _ in range(6)]
    released = await call("/v1/release", reservation=name, outcome="ok")
    again = await call("/v1/release", reservation=name, outcome="ok")
    used = await events(router, 1)

    assert (reserved.status, refreshed, released.status) == (200, [200] * 6, 200)
    assert alone == [200] * 6
    assert (again.status, again.json["error"]["code"]) == (404, "no-reservation")
    assert [event["endpoint"] for event in used] == ["a"]
