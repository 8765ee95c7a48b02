"""Clients that send at a rate, whatever happens to their requests."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from routing.simulator.requests import BLOCK_TOKENS, Arrival, Stage, Workload

Arrivals = Literal["poisson", "constant"]

PER_STAGE = 1_000_000
"""Requests of a stage at most; their numbers tell prompts of different stages apart."""


class Traffic(Workload, Protocol):
    """A workload of this folder: it says what a pool needs to be able to serve it."""

    @property
    def block_tokens(self) -> int:
        """Tokens behind each key of its prompts."""

    @property
    def longest_tokens(self) -> int:
        """Prompt and answer of its longest request; what is drawn may be a little longer."""


@dataclass(frozen=True, kw_only=True)
class OpenLoop(ABC):
    """Lengths in tokens. A kind says what a request is (`drawn`); this says when it comes."""

    id: str
    stages: tuple[Stage, ...]
    arrivals_are: Arrivals = "poisson"
    block_tokens: int = BLOCK_TOKENS

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`. A stage without rate or length raises ValueError."""
        times = times_of(self.stages[stage], rng, self.arrivals_are, of=self.id)
        for sent, at in enumerate(times):
            yield self.drawn(at, stage * PER_STAGE + sent, rng)

    @property
    @abstractmethod
    def longest_tokens(self) -> int:
        """See `Traffic`."""

    @abstractmethod
    def drawn(self, at: float, number: int, rng: np.random.Generator) -> Arrival:
        """A request; `number` is its own in the whole workload."""


def times_of(
    stage: Stage, rng: np.random.Generator, arrivals_are: Arrivals, *, of: str
) -> Iterator[float]:
    """Seconds after the start of a stage, drawn one by one, at most `PER_STAGE`."""
    rate, seconds = stage.rate_qps, stage.seconds
    if not rate or not seconds:
        raise ValueError(f"Stage '{stage.name}' of '{of}' has no rate.")
    at = 0.0
    for _ in range(PER_STAGE):
        at += float(rng.exponential(1 / rate)) if arrivals_are == "poisson" else 1 / rate
        if at >= seconds:
            return
        yield at


def drawn_length(mean: int, spread: float, rng: np.random.Generator) -> int:
    """A length of at least 1, normal around its mean; `spread` is the deviation's share of it."""
    return max(1, round(float(rng.normal(mean, spread * mean)))) if spread else mean


def ladder(*steps: tuple[float, float], warm_up: int = 0) -> tuple[Stage, ...]:
    """Stages of `(requests per second, seconds)`; the first `warm_up` are left out of totals."""
    return tuple(
        Stage(name=f"{rate:g} qps", rate_qps=rate, seconds=seconds, is_warm_up=position < warm_up)
        for position, (rate, seconds) in enumerate(steps)
    )
