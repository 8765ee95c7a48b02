"""Requests of several kinds in one stream: short beside long, shared beside new."""

from dataclasses import dataclass

import numpy as np

from routing.simulator.requests import Arrival
from routing.simulator.workloads.open_loop import OpenLoop


@dataclass(frozen=True, kw_only=True)
class Mixture(OpenLoop):
    """Each request is of one part, by chance. The stages and arrival times of parts are not used.

    Parts need ids of their own, since these tell their prompts apart.
    """

    parts: tuple[tuple[float, OpenLoop], ...]
    """`(share, part)`; shares need not add up to 1."""

    @property
    def longest_tokens(self) -> int:
        """See `Traffic`."""
        return max(part.longest_tokens for _, part in self.parts)

    def drawn(self, at: float, number: int, rng: np.random.Generator) -> Arrival:
        """See `OpenLoop`."""
        shares = np.cumsum([share for share, _ in self.parts])
        chosen = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
        return self.parts[chosen][1].drawn(at, number, rng)
