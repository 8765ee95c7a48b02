"""What arrives: prompts as chains of block keys with lengths, answers as lengths. No text."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import xxhash

BLOCK_TOKENS = 64
"""Tokens behind a key, unless the data have larger blocks. Engines use 16 to 128."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Equal keys mean equal prompts up to and including that block, as in `routing.core.prompt`."""

    keys: tuple[int, ...]
    """One per whole block."""
    tokens: int
    block_tokens: int = BLOCK_TOKENS


class Chain:
    """Texts one after the other as block keys; a conversation adds to it turn by turn.

    A block that two texts share has a key of both. Texts of one name that differ in length have
    their beginning in common.
    """

    def __init__(self, block_tokens: int = BLOCK_TOKENS) -> None:
        self.block_tokens = block_tokens
        self.tokens = 0
        self.keys: list[int] = []
        self._parent, self._filled, self._content = 0, 0, b""

    def add(self, name: int | str, tokens: int) -> None:
        """A text; equal names are equal texts."""
        self.tokens += tokens
        start = 0
        while start < tokens:
            taken = min(self.block_tokens - self._filled, tokens - start)
            self._content += f"{name}@{start}+{taken};".encode()
            self._filled += taken
            start += taken
            if self._filled == self.block_tokens:
                self._parent = xxhash.xxh3_64_intdigest(self._content, self._parent)
                self.keys.append(self._parent)
                self._filled, self._content = 0, b""

    def prompt(self) -> Prompt:
        """All texts up to now."""
        return Prompt(tuple(self.keys), self.tokens, self.block_tokens)


def prompt_of(
    parts: Iterable[tuple[int | str, int]], *, block_tokens: int = BLOCK_TOKENS
) -> Prompt:
    """A prompt of consecutive texts `(name, tokens)`, as `Chain` adds them."""
    chain = Chain(block_tokens)
    for name, tokens in parts:
        chain.add(name, tokens)
    return chain.prompt()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One request of a workload."""

    at: float
    """Seconds after the start of its stage; for a request that follows another, ignored."""
    prompt: Prompt
    output_tokens: int
    """How long the answer will be; engines are not told."""
    max_tokens: int | None = None
    """What the client states; `None` states nothing."""
    tenant: str = "tenant"
    session: str | None = None
    priority: int = 0
    is_streamed: bool = True
    """Else the whole answer comes with its last token, and the router learns of no other."""
    answer_keys: tuple[int, ...] = ()
    """Keys of the blocks that the answer fills, where a later prompt has them."""
    then: "Arrival | None" = None
    """What the same client sends after this one was answered."""
    goes_on: bool = False
    """`then` follows whatever became of this one: clients that keep a number of requests open."""
    pause_seconds: float = 0.0
    """Between that end and `then`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of a workload that is measured by itself. The next one starts when all is answered."""

    name: str
    rate_qps: float | None = None
    """Offered rate; `None` where a trace or a number of clients sets it."""
    seconds: float | None = None
    """How long requests are sent; `None` as long as there are any."""
    is_warm_up: bool = False
    """Left out of totals."""


class Workload(Protocol):
    """Stages and what arrives in each. Equal generators give equal arrivals."""

    @property
    def id(self) -> str:
        """As in reports."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In order."""

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterable[Arrival]:
        """Of one stage, in order of `at`; drawn lazily, so that a workload may change its rate."""


@dataclass(slots=True, eq=False)
class Course:
    """What became of a request. Times are virtual seconds; `None` did not happen."""

    number: int
    stage: int
    arrival: Arrival
    """Without keys and what follows, after the end."""
    sent_at: float
    decided_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    outcome: str = "open"
    """`ok`, `timeout`, `failed`, or the code of a refusal."""
    destination: str | None = None
    prefill: str | None = None
    cached_tokens: int = 0
    """Prompt tokens found in the cache of the endpoint that computed the prompt."""
    output_tokens: int = 0
    predicted_ttft: float | None = None
    predicted_tpot: float | None = None
    attempts: int = 0
    preempted: int = 0

    @property
    def ttft(self) -> float | None:
        """From sending to the first token."""
        return None if self.first_token_at is None else self.first_token_at - self.sent_at

    @property
    def tpot(self) -> float | None:
        """Mean time per output token after the first; `None` for answers of one token."""
        if self.ended_at is None or self.first_token_at is None or self.output_tokens < 2:
            return None
        return (self.ended_at - self.first_token_at) / (self.output_tokens - 1)

    @property
    def e2e(self) -> float | None:
        """From sending to the last token."""
        return None if self.ended_at is None else self.ended_at - self.sent_at
