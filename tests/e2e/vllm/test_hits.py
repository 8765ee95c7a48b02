"""Predicted hits are the engine's own: two real engines, their real events, 500 requests.

KV memory is small, so blocks are evicted all the time; one engine is killed and started again on
the way. What is compared is what the index said when a request was decided on (`indexed_tokens`);
the price takes it times trust, which is below 1 for a while after a miss. The run prints what it
found per kind of request.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from routing.servers.decisions import DETAILED_PER_SECOND
from tests.e2e.vllm.engines import ADAPTERS, BLOCK_TOKENS, MODELS, VllmEngine, running
from tests.e2e.vllm.pools import Pool, document, serving, until
from tests.e2e.vllm.talk import CHAT, KINDS, RESPONSES, Talk, Wish

REQUESTS, KILLED_AFTER, BACK_BY = 500, 200, 320
KV_BLOCKS = 300
WANTED_SHARE = 0.99
ENGINE_ARGUMENTS = (
    *("--num-gpu-blocks-override", str(KV_BLOCKS)),
    *("--enable-lora", "--max-loras", "2", "--max-lora-rank", "8", "--lora-modules"),
    *(f"{name}={MODELS / name}" for name in ADAPTERS),
)


class Seen(NamedTuple):
    """One answered request."""

    number: int
    kind: str
    endpoint: str
    predicted: int
    trusted: int
    cached: int
    prompt: int
    degraded: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        return self.predicted == self.cached


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, VllmEngine]]:
    found = {
        f"both-{letter}": VllmEngine(letter, core=core, arguments=ENGINE_ARGUMENTS)
        for core, letter in enumerate("ab")
    }
    with running(*found.values()):
        yield found


async def test_predicted_hits_are_what_real_engines_find_cached(
    engines: dict[str, VllmEngine], tmp_path: Path, figures: list[str]
) -> None:
    async with serving(tmp_path) as pool:
        await pool.push(document(engines, kv_tokens=KV_BLOCKS * BLOCK_TOKENS))
        await until(lambda: all_known(pool, set(engines)), what="events and tokens of both engines")
        talk, victim = Talk(seed=6), engines["both-b"]

        seen = await converse(pool, talk, range(KILLED_AFTER))
        victim.stop(signal.SIGKILL)
        victim.start()
        seen += await converse(pool, talk, range(KILLED_AFTER, BACK_BY))
        await asyncio.to_thread(victim.wait)
        seen += await converse(pool, talk, range(BACK_BY, REQUESTS))
        events = {name: (await pool.endpoint(name))["events"] for name in engines}

    figures += described(seen, events)
    assert len(seen) == REQUESTS
    assert sum(one.is_equal for one in seen) >= WANTED_SHARE * REQUESTS
    assert {one.kind for one in seen if one.cached} == set(KINDS)
    assert all(found["removed_blocks"] for found in events.values()), "nothing was evicted"
    assert any(one.endpoint == "both-b" and one.cached for one in seen if one.number >= BACK_BY)


async def all_known(pool: Pool, names: set[str]) -> bool:
    """Whether events of all engines are followed and prompts are read as tokens."""
    found = (await pool.state())["endpoints"]
    followed = {one["id"] for one in found if one["events"] is not None}
    body = {"model": "tiny", "messages": [{"role": "user", "content": "anything at all"}]}
    return followed == names and not guesses((await pool.explained(CHAT, body))["degraded"])


def guesses(degraded: list[str]) -> bool:
    """Whether a prompt's tokens were not known when it was decided on."""
    return any(reason.startswith(("tokens-", "tokeniser-")) for reason in degraded)


async def converse(pool: Pool, talk: Talk, numbers: range) -> list[Seen]:
    """One request after the other, no faster than decisions are recorded."""
    seen = []
    for number in numbers:
        wish = talk.next()
        answer, _ = await asyncio.gather(
            pool.ask(wish.path, wish.body), asyncio.sleep(1.1 / DETAILED_PER_SECOND)
        )
        assert answer.status_code == 200, answer.text
        usage, text = told(wish, answer)
        talk.heard(wish, text)
        decision = await pool.decision(answer)
        cached, prompt = tokens_of(wish, usage)
        seen.append(
            Seen(
                number=number,
                kind=wish.kind,
                endpoint=decision["destination"],
                predicted=decision["predicted"]["indexed_tokens"],
                trusted=decision["predicted"]["hit_tokens"],
                cached=cached,
                prompt=prompt,
                degraded=tuple(decision["degraded"]),
            )
        )
    return seen


def told(wish: Wish, answer: httpx.Response) -> tuple[dict[str, Any], str]:
    """Usage and text of an answer."""
    if wish.body.get("stream"):
        lines = answer.text.split("\n\n")
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        return chunks[-1]["usage"], ""
    content = answer.json()
    text = content["choices"][0]["message"]["content"] if wish.path == CHAT else ""
    return content["usage"], text


def tokens_of(wish: Wish, usage: dict[str, Any]) -> tuple[int, int]:
    """Cached tokens and prompt tokens; engines leave the details out where nothing is cached."""
    sort = "input" if wish.path == RESPONSES else "prompt"
    details = usage.get(f"{sort}_tokens_details") or {}
    return details.get("cached_tokens") or 0, usage[f"{sort}_tokens"]


def described(seen: list[Seen], events: dict[str, Any]) -> list[str]:
    """The figures, for people."""
    equal, all_of = Counter[str](), Counter[str]()
    for one in seen:
        all_of[one.kind] += 1
        equal[one.kind] += one.is_equal
    hits, prompts = sum(one.cached for one in seen), sum(one.prompt for one in seen)
    trusted = sum(one.trusted == one.cached for one in seen)
    return [
        f"predicted = cached in {equal.total()} of {all_of.total()} requests,"
        f" {trusted} after trust",
        *(f"  {kind:<13}{equal[kind]:>4} of {all_of[kind]:>3}" for kind in KINDS),
        f"  {hits} of {prompts} prompt tokens were cached; by endpoint:"
        f" {dict(Counter(one.endpoint for one in seen))}",
        *(f"  events of {name}: {_counts(found)}" for name, found in events.items()),
        *(f"  other: {one}" for one in seen if not one.is_equal),
    ]


def _counts(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value}
