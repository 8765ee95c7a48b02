"""A workload without an end, whose rate may be changed while it runs."""

from collections.abc import Iterator

import numpy as np

from routing.simulator.requests import Arrival, Stage
from routing.simulator.workloads.open_loop import OpenLoop

LEAST_QPS, MOST_QPS = 0.1, 1000.0


class Live:
    """Poisson arrivals of what `of` draws; its stages are not used.

    A new rate holds from the arrival after the next one on. Runs that are given the same seed and
    are at the same virtual time when the rate changes get the same requests.
    """

    def __init__(self, of: OpenLoop, *, rate_qps: float) -> None:
        self.of = of
        self.id = of.id
        self.block_tokens = of.block_tokens
        self.longest_tokens = of.longest_tokens
        self.stages = (Stage(name="live"),)
        self.rate_qps = rate_qps

    @property
    def rate_qps(self) -> float:
        """Requests per second, `LEAST_QPS` to `MOST_QPS`; others raise ValueError."""
        return self._rate_qps

    @rate_qps.setter
    def rate_qps(self, rate: float) -> None:
        if not LEAST_QPS <= rate <= MOST_QPS:
            raise ValueError(
                f"{rate} requests/s cannot be sent; {LEAST_QPS:g} to {MOST_QPS:g} can."
            )
        self._rate_qps = float(rate)

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`; without an end."""
        at, number = 0.0, 0
        while True:
            at += float(rng.exponential(1 / self._rate_qps))
            yield self.of.drawn(at, number, rng)
            number += 1
