"""Cache events of simulated engines, followed by a router in the same event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from routing.core.block_masks import short_keys
from routing.core.prompt import exact_root, token_block_keys
from routing.pool.caches import Caches
from routing.testbed.engine import Engine
from routing.testbed.settings import EngineSettings
from tests.routing.servers.client import Answer
from tests.routing.servers.scripted import MODEL, Stage, document

COMPLETIONS = "/v1/completions"
BLOCK = 16


@dataclass
class Simulated:
    """A simulated engine as the document builder wants it."""

    name: str
    engine: Engine

    @property
    def port(self) -> int:
        return self.engine.port

    async def stop(self) -> None:
        await self.engine.stop(grace_seconds=0)


class Theatre(Stage):
    """A router and simulated engines that publish."""

    async def simulated(self, name: str, **settings: Any) -> Simulated:
        values: dict[str, Any] = {
            "model": MODEL,
            "accelerator": "amd-mi325x",
            "engine_id": name,
            "speed": 50.0,
            "kv_events_port": 0,
            "kv_tokens": 20_000,
        }
        engine = Engine(EngineSettings(**(values | settings)))
        await engine.start()
        found = Simulated(name, engine)
        self.engines[name] = found  # type: ignore[assignment]
        return found

    async def restart(self, name: str, **settings: Any) -> None:
        """The same engine in another life of its process, at the same addresses."""
        before = self.engines[name].engine  # type: ignore[attr-defined]
        publisher = before.publisher
        await before.stop(grace_seconds=0)
        await self.simulated(
            name,
            port=before.port,
            kv_events_port=publisher.port,
            kv_replay_port=publisher.replay_port,
            **settings,
        )

    @property
    def caches(self) -> Caches:
        return self.router.state.directory.pools["main"].router.caches

    def events(self, name: str) -> dict[str, Any] | None:
        instance = self.caches.instance(name)
        assert instance is not None
        return self.caches.events.describe(instance, now=0.0)

    def held(self, name: str, tokens: list[int]) -> int:
        """Tokens of a prompt in an engine's cache, as the router knows it."""
        instance = self.caches.instance(name)
        assert instance is not None
        raw = b"".join(token.to_bytes(4, "little") for token in tokens)
        keys = token_block_keys(raw, root=exact_root(None, None), block_tokens=BLOCK)
        return int(self.caches.blocks.match(short_keys(keys)).depths[instance.slot]) * BLOCK

    async def complete(self, tokens: list[int], **more: Any) -> Answer:
        body = {"model": MODEL, "prompt": tokens, "max_tokens": 2} | more
        answer = await self.ask(body, path=COMPLETIONS)
        assert answer.status == 200, answer.body
        return answer

    async def becomes(self, condition: Callable[[], bool], *, seconds: float = 15.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)

    async def is_live(self, *names: str) -> None:
        """Streams of these endpoints are whole."""

        def is_so() -> bool:
            return all((self.events(name) or {}).get("state") == "live" for name in names)

        await self.becomes(is_so)

    def sources(self, **more: Any) -> dict[str, Any]:
        """The endpoints of the document, each with where its events are."""
        endpoints = []
        for spec in document(list(self.engines.values())).endpoints:
            publisher = self.engines[spec.id].engine.publisher  # type: ignore[attr-defined]
            events = {
                "endpoint": f"tcp://127.0.0.1:{publisher.port}",
                "replay_endpoint": f"tcp://127.0.0.1:{publisher.replay_port}",
            }
            endpoints.append(msgspec.to_builtins(spec) | {"kv_events": events | more})
        return {"endpoints": endpoints, "policy": {"name": "consort"}}


@pytest.fixture
async def theatre(tmp_path: Path) -> AsyncIterator[Theatre]:
    theatre = Theatre(tmp_path / "state")
    await theatre.start_router()
    yield theatre
    await theatre.stop()


def prompt(number: int, blocks: int) -> list[int]:
    return [number * 10_000 + position for position in range(blocks * BLOCK)]


def cached(answer: Answer) -> int:
    found: int = answer.json["usage"]["prompt_tokens_details"]["cached_tokens"]
    return found


async def decisions(theatre: Theatre) -> list[dict[str, Any]]:
    answer = await theatre.admin("GET", "/admin/decisions?after=0&limit=1000")
    found: list[dict[str, Any]] = answer.json["decisions"]
    return found


async def test_predicted_hits_are_those_that_engines_report(theatre: Theatre) -> None:
    await theatre.simulated("a")
    await theatre.simulated("b")
    await theatre.load(**theatre.sources(), recording={"sample_rate": 1.0})
    await theatre.is_live("a", "b")
    system = prompt(1, 40)

    reported = []
    for turn in range(8):
        answer = await theatre.complete([*system, *prompt(2 + turn, 10), 5])
        reported.append(cached(answer))
        await asyncio.sleep(0.05)

    records = [record for record in await decisions(theatre) if "predicted" in record]
    found = [record["predicted"]["indexed_tokens"] for record in records]
    assert reported[1:] == [640] * 7
    assert found == reported[: len(found)]
    state = (await theatre.admin("GET", "/admin/state")).json["pools"]["main"]["endpoints"]
    for rates in (endpoint["hits"] for endpoint in state):
        assert rates is None or rates["predicted_rate"] == rates["real_rate"]


@pytest.mark.lesson("X02")
async def test_evictions_are_followed(theatre: Theatre) -> None:
    await theatre.simulated("a", kv_tokens=1600)
    await theatre.load(**theatre.sources())
    await theatre.is_live("a")
    first = prompt(1, 60)
    await theatre.complete(first)
    await theatre.becomes(lambda: theatre.held("a", first) == 960)

    await theatre.complete(prompt(2, 80))

    await theatre.becomes(lambda: theatre.held("a", prompt(2, 80)) == 1280)
    assert theatre.held("a", first) < 960
    answer = await theatre.complete([*first, 1], max_tokens=1)
    assert cached(answer) <= 320


@pytest.mark.lesson("X01")
async def test_a_router_that_starts_later_learns_what_engines_hold(theatre: Theatre) -> None:
    await theatre.simulated("a")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a")
    text = prompt(1, 50)
    await theatre.complete(text)
    await theatre.becomes(lambda: theatre.held("a", text) == 800)

    await theatre.router.stop()
    await theatre.start_router()

    await theatre.is_live("a")
    assert theatre.held("a", text) == 800


@pytest.mark.lesson("X03")
async def test_a_restarted_engine_is_known_to_be_empty(theatre: Theatre) -> None:
    await theatre.simulated("a")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a")
    for number in range(3):
        await theatre.complete(prompt(number, 20))
    await theatre.becomes(lambda: theatre.held("a", prompt(2, 20)) == 320)

    await theatre.restart("a")
    other = prompt(7, 20)

    async def answered() -> None:
        while not theatre.held("a", other):
            answer = await theatre.ask(
                {"model": MODEL, "prompt": other, "max_tokens": 2}, path=COMPLETIONS
            )
            assert answer.status in (200, 502, 503)
            await asyncio.sleep(0.1)

    async with asyncio.timeout(20):
        await answered()
    assert theatre.held("a", prompt(2, 20)) == 0
    assert (theatre.events("a") or {})["reasons"].get("rollback", 0) <= 1


@pytest.mark.lesson("X04")
async def test_what_was_lost_on_the_way_is_replayed(theatre: Theatre) -> None:
    simulated = await theatre.simulated("a")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a")
    await theatre.complete(prompt(1, 20))
    await theatre.becomes(lambda: theatre.held("a", prompt(1, 20)) == 320)
    publisher = simulated.engine.publisher
    assert publisher is not None
    send, lost = publisher._pub.send_multipart, []
    publisher._pub.send_multipart = lambda frames, flags: lost.append(frames)  # type: ignore[method-assign,assignment]
    await theatre.complete(prompt(2, 20))
    assert lost
    publisher._pub.send_multipart = send  # type: ignore[method-assign]

    await theatre.complete(prompt(3, 20))

    await theatre.becomes(lambda: theatre.held("a", prompt(3, 20)) == 320)
    await theatre.is_live("a")
    assert theatre.held("a", prompt(2, 20)) == 320
    assert (theatre.events("a") or {})["reasons"]["gap"] >= 1


@pytest.mark.lesson("X06")
async def test_garbage_is_counted_and_disturbs_nobody(theatre: Theatre) -> None:
    simulated = await theatre.simulated("a")
    await theatre.simulated("b")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a", "b")
    publisher = simulated.engine.publisher
    assert publisher is not None

    for frames in ([b"t", b"short", b""], [b"t", (10**6).to_bytes(8, "big"), b"\xc1" * 50], [b"t"]):
        publisher._pub.send_multipart(frames)
    await theatre.becomes(lambda: (theatre.events("a") or {})["reasons"].get("undecodable", 0) >= 2)

    for number in range(4):
        await theatre.complete(prompt(number, 10))
    assert (theatre.events("b") or {})["state"] == "live"
    state = (await theatre.admin("GET", "/admin/state")).json["pools"]["main"]["endpoints"]
    assert state[0]["events"]["reasons"]["undecodable"] >= 2


@pytest.mark.lesson("W10")
@pytest.mark.lesson("X13")
async def test_operators_see_prefixes_rates_and_streams(theatre: Theatre) -> None:
    await theatre.simulated("a")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a")
    for _ in range(3):
        await theatre.complete([*prompt(1, 20), 5])
    await theatre.becomes(lambda: theatre.held("a", prompt(1, 20)) == 320)

    listed = (await theatre.admin("GET", "/admin/endpoints/a/prefixes")).json
    page = (await theatre.admin("GET", "/metrics")).body.decode()
    missing = await theatre.admin("GET", "/admin/endpoints/nobody/prefixes")

    (group,) = listed["pools"]["main"]
    assert (group["held_tokens"], group["requests"]) == (320, 3)
    for name in (
        'consort_prefix_hit_rate{endpoint="a",kind="predicted",pool="main"}',
        'consort_prefix_hit_rate{endpoint="a",kind="real",pool="main"}',
        'consort_cache_event_blocks{endpoint="a",pool="main"} 20.0',
        'consort_cache_event_trust{endpoint="a",pool="main"} 1.0',
        'consort_cache_event_age_seconds{endpoint="a",pool="main"}',
    ):
        assert name in page
    assert missing.status == 404


async def test_engines_are_asked_for_their_sources(theatre: Theatre) -> None:
    await theatre.simulated("a")

    await theatre.load(prompt_identity={"mode": "engine"})

    await theatre.is_live("a")


async def test_an_engine_that_publishes_nothing_is_a_finding(theatre: Theatre) -> None:
    await theatre.simulated("a", kv_events_port=None)

    await theatre.load(prompt_identity={"mode": "engine"})

    async def codes() -> set[str]:
        state = (await theatre.admin("GET", "/admin/state")).json
        return {finding["code"] for finding in state["pools"]["main"]["findings"]}

    async with asyncio.timeout(10):
        while "no-cache-events" not in await codes():
            await asyncio.sleep(0.05)
    assert (await theatre.complete(prompt(1, 4))).status == 200


async def test_an_engine_that_connects_finds_a_port_bound(theatre: Theatre) -> None:
    """Some publishers dial the collector, as vLLM does with an address without a wildcard."""
    await theatre.simulated("a")
    context: zmq.Context[Any] = zmq.Context()
    publisher = context.socket(zmq.PUB)
    publisher.linger = 0
    probe = context.socket(zmq.PUB)
    port = probe.bind_to_random_port("tcp://127.0.0.1")
    probe.close()
    try:
        changes = theatre.sources(endpoint=f"tcp://*:{port}", replay_endpoint=None, topic="kv@a@")
        await theatre.load(**changes)
        publisher.connect(f"tcp://127.0.0.1:{port}")
        text = prompt(1, 4)
        stored = ["BlockStored", [2**60 + 1, 2**60 + 2, 2**60 + 3, 2**60 + 4], None, text, 16]
        payload = msgspec.msgpack.encode([1.0, [stored], 0])

        async with asyncio.timeout(10):
            while theatre.held("a", text) != 64:
                # The first number, until the subscription has arrived at the publisher.
                publisher.send_multipart([b"kv@b@m", bytes(8), payload])
                publisher.send_multipart([b"kv@a@m", bytes(8), payload])
                await asyncio.sleep(0.05)
    finally:
        context.destroy(linger=0)
    assert (theatre.events("a") or {})["state"] == "live"


async def test_a_document_without_an_endpoint_ends_its_stream(theatre: Theatre) -> None:
    await theatre.simulated("a")
    await theatre.simulated("b")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a", "b")
    await theatre.complete(prompt(1, 20))

    gone = theatre.engines.pop("a")
    await theatre.load(version=2, **theatre.sources())
    await theatre.is_live("b")
    await gone.stop()

    assert theatre.caches.instance("a") is None
    assert len(theatre.caches.events.health) == 1


async def test_large_batches_do_not_hold_up_the_loop(theatre: Theatre) -> None:
    simulated = await theatre.simulated("a")
    await theatre.load(**theatre.sources())
    await theatre.is_live("a")
    publisher = simulated.engine.publisher
    assert publisher is not None
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    count = 20_000
    text = [position % 100_000 for position in range(count * BLOCK)]
    event = {
        "type": "BlockStored",
        "block_hashes": [2**60 + number for number in range(count)],
        "parent_block_hash": None,
        "token_ids": text,
        "block_size": BLOCK,
    }
    publisher.publish([event])
    await theatre.becomes(lambda: bool((theatre.events("a") or {})["blocks"]))
    watcher = asyncio.create_task(others())
    await theatre.becomes(lambda: (theatre.events("a") or {})["blocks"] == count, seconds=30)

    watcher.cancel()
    # Applied in slices of a thousand blocks, between which others have their turns.
    assert turns > 2
    assert theatre.held("a", text) == count * BLOCK
