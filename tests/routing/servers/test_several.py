"""Processes and routers share what they know."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.routing.servers.client import RawClient, request
from tests.routing.servers.running import (
    CLIENT,
    DEADLINE,
    Start,
    engine_arguments,
    events,
    keep_asking,
    push,
    router_arguments,
    start_several,
    state_of,
)
from tests.routing.servers.scripted import CHAT, SECRET, chat, key

pytestmark = pytest.mark.processes


async def test_a_prefix_that_one_process_sent_somewhere_is_a_hit_for_the_others(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engines = {name: await launch(*engine_arguments("both")) for name in ("a", "b", "c")}
    router = await start_several(launch, tmp_path / "state", token_file)
    keys = [key("ana", SECRET, may_test=True)]
    await push(router, engines, policy={"name": "consort"}, keys=keys)

    async with contextlib.AsyncExitStack() as stack:
        # Open connections are spread evenly, so each is of another process.
        clients = [await stack.enter_async_context(RawClient(router.port)) for _ in engines]
        for number in range(4):
            prompt = [{"role": "user", "content": f"shared prefix {number} " * 1000}]
            body = chat(messages=prompt, max_tokens=2)
            first, *others = clients[number % 3 :] + clients[: number % 3]
            assert (await first.request("POST", CHAT, body, headers=CLIENT)).status == 200
            for other in others:
                await until_expected(other, body)
                assert (await other.request("POST", CHAT, body, headers=CLIENT)).status == 200
    used = await events(router, 4 * len(engines))

    # Processes hand over their usage in turns, so it is not in the order of the requests.
    used.sort(key=lambda one: one["received_at"])
    by_prompt = [used[start : start + 3] for start in range(0, len(used), 3)]
    assert all(len({one["endpoint"] for one in three}) == 1 for three in by_prompt)
    assert all(one["cached_tokens"] for _, *others in by_prompt for one in others)


async def until_expected(client: RawClient, body: dict[str, Any]) -> None:
    """The process behind a connection has heard where a prompt was sent."""
    question = {"path": CHAT, "body": body}
    async with asyncio.timeout(DEADLINE):
        while True:
            answer = await client.request("POST", "/v1/explain", question, headers=CLIENT)
            assert answer.status == 200, answer.body
            if any(candidate["hit_tokens"] for candidate in answer.json["candidates"]):
                return
            await asyncio.sleep(0.01)


async def test_two_routers_share_what_they_know_when_they_share_a_secret(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engines = {name: await launch(*engine_arguments("both")) for name in ("a", "b", "c")}
    secret = tmp_path / "secret"
    secret.write_text("a secret that both routers hold")
    first = await start_several(
        launch,
        tmp_path / "one",
        token_file,
        *("--gossip-port", "0", "--gossip-secret-file", str(secret)),
    )
    peer = f"127.0.0.1:{first.ready['gossip_port']}"
    second = await launch(
        *router_arguments(
            tmp_path / "two", token_file, "--peer", peer, "--gossip-secret-file", str(secret)
        )
    )
    stranger = await launch(*router_arguments(tmp_path / "three", token_file, "--peer", peer))
    for router in (first, second, stranger):
        await push(router, engines)
    answered: list[str] = []
    asking = asyncio.create_task(keep_asking(second, "one", answered))

    heard, page = 0, ""
    async with asyncio.timeout(DEADLINE):
        while not heard or 'consort_gossip_packets_total{result="wrong seal"}' not in page:
            endpoints = (await state_of(first))["pools"]["main"]["endpoints"]
            page = (await request(first.admin_port, "GET", "/metrics")).body.decode()
            heard = max(heard, sum(endpoint["peers_requests"] for endpoint in endpoints))
            await asyncio.sleep(0.02)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert heard >= 1
    assert sum(endpoint["inflight_requests"] for endpoint in endpoints) == 0
