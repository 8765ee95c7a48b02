"""Texts are tokenised in the background: each once, few at a time, within bounds."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from routing.identity.chains import Chains
from routing.servers import filling
from routing.servers.engine_tokens import NoTokensError
from routing.servers.filling import Filler

AT_ONCE = 4


def memory() -> Chains:
    return Chains(block_tokens=1, cache_bytes=10**6, secret=1)


class Source:
    """Answers when it is let, and remembers how it was asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.running = self.most = 0
        self.gate = asyncio.Event()
        self.is_down = False

    async def __call__(self, text: str) -> bytes:
        self.asked[text] += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await self.gate.wait()
        self.running -= 1
        if self.is_down:
            raise NoTokensError("scripted")
        return b"\1\0\0\0"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def test_each_text_is_asked_for_once_and_few_at_a_time() -> None:
    chains, source, counts = memory(), Source(), Counter()
    filler = Filler(chains, source, at_once=AT_ONCE, count=lambda result: counts.update([result]))
    texts = [f"text {number}" for number in range(20)]

    for _ in range(3):
        filler.want(texts)
    await until(lambda: source.running == AT_ONCE)
    filler.want(texts)
    source.gate.set()
    await until(lambda: counts["done"] == 20)

    assert set(source.asked.values()) == {1}
    assert source.most == AT_ONCE
    assert all(chains.knows(text) for text in texts)


async def test_what_finds_no_room_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "MOST_WAITING_BYTES", 100)
    chains, source, counts = memory(), Source(), Counter()
    filler = Filler(chains, source, at_once=AT_ONCE, count=lambda result: counts.update([result]))

    filler.want(["x" * 60, "y" * 60])
    source.gate.set()
    await until(lambda: counts["done"] == 1)
    filler.want(["y" * 60])
    await until(lambda: counts["done"] == 2)

    assert counts["no-room"] == 1


async def test_a_failure_is_told_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "PAUSE_SECONDS", 0.01)
    chains, source, counts = memory(), Source(), Counter()
    filler = Filler(chains, source, at_once=AT_ONCE, count=lambda result: counts.update([result]))
    source.is_down = True
    source.gate.set()

    filler.want(["x"])
    await until(lambda: counts["failed"] == 1)
    assert filler.is_failing
    source.is_down = False
    filler.want(["x"])
    await until(lambda: counts["done"] == 1)

    assert not filler.is_failing
    assert source.asked["x"] == 2


async def test_stopping_ends_what_runs() -> None:
    chains, source = memory(), Source()
    filler = Filler(chains, source, at_once=AT_ONCE, count=lambda result: None)
    filler.want(["x", "y"])
    await until(lambda: source.running)

    await filler.stop()

    assert not chains.knows("x")


async def test_the_beginning_of_a_long_prompt_comes_first() -> None:
    chains, source, counts = memory(), Source(), Counter()
    filler = Filler(chains, source, at_once=AT_ONCE, count=lambda result: counts.update([result]))
    source.gate.set()
    texts = [str(number) * 100_000 for number in range(1, 10)] + ["x" * 200_000]

    filler.want(texts)
    await until(lambda: counts["done"] == 9)

    assert not chains.knows(texts[-1])
