"""Clients that keep one request open each: the next one follows the end of the last.

The rate is what the pool gives. A stage ends after a number of requests and not after a time, so
that every policy answers the same requests.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from routing.simulator.requests import Arrival, Stage
from routing.simulator.workloads.open_loop import PER_STAGE, OpenLoop


@dataclass(frozen=True, kw_only=True)
class ClosedLoop:
    """`of` says what is asked; its stages and arrival times are not used."""

    id: str
    of: OpenLoop
    clients: tuple[int, ...]
    """Of each stage."""
    requests_per_client: int = 10
    pause_seconds: float = 0.0
    """Mean time between an answer and the next request of a client, exponential."""
    ramp_seconds: float = 1.0
    """Over which clients start."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One for each number of clients."""
        return tuple(Stage(name=f"{count} clients") for count in self.clients)

    @property
    def block_tokens(self) -> int:
        """See `Traffic`."""
        return self.of.block_tokens

    @property
    def longest_tokens(self) -> int:
        """See `Traffic`."""
        return self.of.longest_tokens

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`: the first request of each client, which the others follow."""
        count = self.clients[stage]
        for client in range(count):
            first = stage * PER_STAGE + client * self.requests_per_client
            yield self._chain(self.ramp_seconds * client / count, first, rng)

    def _chain(self, at: float, first: int, rng: np.random.Generator) -> Arrival:
        numbers = range(first, first + self.requests_per_client)
        drawn = [self.of.drawn(at, number, rng) for number in numbers]
        chain = drawn.pop()
        for arrival in reversed(drawn):
            pause = float(rng.exponential(self.pause_seconds))
            chain = replace(arrival, then=chain, goes_on=True, pause_seconds=pause)
        return chain
