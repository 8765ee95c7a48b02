"""Prompts that share nothing, of lengths around a mean."""

from dataclasses import dataclass

import numpy as np

from routing.simulator.requests import Arrival, prompt_of
from routing.simulator.workloads.open_loop import OpenLoop, drawn_length


@dataclass(frozen=True, kw_only=True)
class RandomLengths(OpenLoop):
    """Lengths in tokens; spreads are standard deviations as shares of the mean."""

    input_tokens: int
    input_spread: float = 0.0
    output_tokens: int
    output_spread: float = 0.0
    most_input_tokens: int | None = None
    """Longer prompts are cut; `None` allows twice the mean."""

    @property
    def longest_tokens(self) -> int:
        """See `Traffic`."""
        return (self._most if self.input_spread else self.input_tokens) + self.output_tokens

    @property
    def _most(self) -> int:
        return self.most_input_tokens or 2 * self.input_tokens

    def drawn(self, at: float, number: int, rng: np.random.Generator) -> Arrival:
        """See `OpenLoop`."""
        tokens = min(self._most, drawn_length(self.input_tokens, self.input_spread, rng))
        output = drawn_length(self.output_tokens, self.output_spread, rng)
        prompt = prompt_of(((f"{self.id}/{number}", tokens),), block_tokens=self.block_tokens)
        return Arrival(at=at, prompt=prompt, output_tokens=output, max_tokens=output)
