"""Requests as they were recorded, at the recorded times or faster."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from routing.simulator.requests import Arrival, Stage


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One stage; `requests` in order of their times, of which the first should be near 0."""

    id: str
    requests: tuple[Arrival, ...]
    block_tokens: int
    speed: float = 1.0
    """Recorded time over simulated: 8 sends in an hour what came in eight."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of it."""
        seconds = self.requests[-1].at / self.speed if self.requests else 0.0
        return (Stage(name=f"speed {self.speed:g}", seconds=seconds),)

    @cached_property
    def longest_tokens(self) -> int:
        """See `Traffic`."""
        return max((one.prompt.tokens + one.output_tokens for one in self.requests), default=0)

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`; nothing is drawn."""
        for request in self.requests:
            yield replace(request, at=request.at / self.speed)
