"""The router as a process, in front of simulated engines: exact usage, crashes, shutdown."""

import asyncio
import contextlib
import itertools
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.routing.servers.client import RawClient, message, request
from tests.routing.servers.running import (
    CLIENT,
    Running,
    Start,
    ask,
    engine_arguments,
    events,
    inflight_at,
    push,
    router_arguments,
    starter,
    state_of,
)
from tests.routing.servers.scripted import ADMIN_TOKEN, CHAT, chat

pytestmark = pytest.mark.processes


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start processes; what is left of them is killed at the end."""
    async with starter() as run:
        yield run


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(ADMIN_TOKEN + "\n")
    return path


async def counters(engine: Running) -> dict[str, float]:
    """The engine's own token counters."""
    page = (await request(engine.port, "GET", "/metrics")).body.decode()
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    return {
        name: float(line.rpartition(" ")[2])
        for line in page.splitlines()
        for name in names
        if line.startswith(name + "{")
    }


async def test_usage_equals_the_engines_counters_with_and_without_pairs(
    start: Start, tmp_path: Path, token_file: Path
) -> None:
    router = await start(*router_arguments(tmp_path / "state", token_file))
    engines = {role: await start(*engine_arguments(role)) for role in ("prefill", "decode", "both")}
    await push(router, engines, roles={role: role for role in engines}, policy={"name": "consort"})

    answers = await asyncio.gather(
        *(
            ask(
                router,
                chat(
                    messages=[{"role": "user", "content": f"{number % 4} " * 3000}],
                    max_tokens=20,
                    stream=bool(number % 3),
                ),
            )
            for number in range(30)
        )
    )
    used = await events(router, 30)

    assert {answer.status for answer in answers} == {200}
    assert {one["token_source"] for one in used} == {"engine"}
    assert any(one["prefill_endpoint"] for one in used)
    assert any(one["cached_tokens"] for one in used)
    counted = [await counters(engines[role]) for role in ("decode", "both")]
    for name, member in (
        ("vllm:prompt_tokens_total", "prompt_tokens"),
        ("vllm:generation_tokens_total", "completion_tokens"),
    ):
        assert sum(one[member] for one in used) == sum(counter[name] for counter in counted)


async def test_a_killed_router_loses_no_event_of_an_answered_request_and_reuses_no_number(
    start: Start, tmp_path: Path, token_file: Path
) -> None:
    folder = tmp_path / "state"
    engine = await start(*engine_arguments("both"))
    router = await start(*router_arguments(folder, token_file))
    await push(router, {"a": engine})
    answered: list[str] = []
    asking = [
        asyncio.create_task(keep_asking(router, str(number), answered)) for number in range(8)
    ]
    before = await events(router, 50)
    # Events are on disk 50 ms after their answer: wait this window out for what is known here.
    safe = list(answered)
    await asyncio.sleep(0.2)
    await router.end(signal.SIGKILL)
    await asyncio.gather(*asking)
    again = await start(*router_arguments(folder, token_file))
    after = await events(again, len(before))

    numbers = [event["sequence"] for event in after]
    assert numbers == list(range(1, len(numbers) + 1))
    known = {event["sequence"]: event["request_id"] for event in after}
    assert all(known[event["sequence"]] == event["request_id"] for event in before)
    assert set(safe) <= set(known.values())
    assert (await ask(again, chat(max_tokens=2))).status == 200
    later = await events(again, len(numbers) + 1)
    assert later[-1]["sequence"] == len(numbers) + 1


async def keep_asking(router: Running, name: str, answered: list[str]) -> None:
    """Ask until the router is gone; `answered` gets the ids of complete answers."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        async with RawClient(router.port) as client:
            for number in itertools.count():
                headers = CLIENT | {"x-request-id": f"{name}-{number}"}
                await client.send(message("POST", CHAT, chat(max_tokens=2), headers=headers))
                await client.answer()
                answered.append(headers["x-request-id"])


async def test_at_the_end_a_running_stream_is_finished_and_its_usage_kept(
    start: Start, tmp_path: Path, token_file: Path
) -> None:
    folder = tmp_path / "state"
    engine = await start(*engine_arguments("both"))
    router = await start(*router_arguments(folder, token_file))
    await push(router, {"a": engine})

    async with RawClient(router.port) as client:
        await client.send(message("POST", CHAT, chat(max_tokens=200, stream=True), headers=CLIENT))
        await client.head()
        await client.chunk()
        ending = asyncio.create_task(router.end())
        chunks = []
        while chunk := await client.chunk():
            chunks.append(chunk)
        status = await ending

    assert status == 0
    assert chunks[-1].endswith(b"data: [DONE]\n\n")
    (stored,) = (folder / "usage").glob("*-*.json")
    assert json.loads(stored.read_bytes())["events"][0]["completion_tokens"] == 200


async def test_two_routers_never_share_a_state_folder(
    start: Start, tmp_path: Path, token_file: Path
) -> None:
    await start(*router_arguments(tmp_path / "state", token_file))

    with pytest.raises(ChildProcessError) as raised:
        await start(*router_arguments(tmp_path / "state", token_file))

    assert raised.value.args == (2,)


@pytest.mark.parametrize("content", [None, "short"], ids=["absent", "too-short"])
async def test_without_a_proper_token_a_router_does_not_start(
    start: Start, tmp_path: Path, content: str | None
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)

    with pytest.raises(ChildProcessError) as raised:
        await start(*router_arguments(tmp_path / "state", token))

    assert raised.value.args == (2,)


async def test_a_busy_port_ends_the_start(start: Start, tmp_path: Path, token_file: Path) -> None:
    first = await start(*router_arguments(tmp_path / "one", token_file))

    with pytest.raises(ChildProcessError) as raised:
        await start(
            *router_arguments(tmp_path / "two", token_file, "--admin-port", str(first.port))
        )

    assert raised.value.args == (2,)


async def test_a_killed_engine_costs_no_request_that_had_no_byte_yet(
    start: Start, tmp_path: Path, token_file: Path
) -> None:
    router = await start(*router_arguments(tmp_path / "state", token_file))
    engines = {name: await start(*engine_arguments("both")) for name in ("a", "b")}
    await push(router, engines)
    asking = [asyncio.create_task(ask(router, chat(max_tokens=4000))) for _ in range(20)]
    async with asyncio.timeout(20):
        while await inflight_at(router, "a") == 0:
            await asyncio.sleep(0.005)

    await engines["a"].end(signal.SIGKILL)
    answers = await asyncio.gather(*asking)
    more = [await ask(router, chat(max_tokens=2)) for _ in range(10)]

    assert {answer.status for answer in [*answers, *more]} == {200}
    state = await state_of(router)
    assert (state["requests"]["failed"], state["leases_open"]) == (0, 0)
