"""Groups of prompts that begin alike, sent at a rate that grows from stage to stage.

The generator of most published llm-d results: `groups` system prompts, `prompts` questions to each;
a request takes a group and one of its questions at random, so that whole prompts come again, too.
"""

from dataclasses import dataclass, field

import numpy as np

from routing.simulator.requests import Arrival, Prompt, prompt_of
from routing.simulator.workloads.open_loop import (
    PER_STAGE,
    Arrivals,
    OpenLoop,
    drawn_length,
    ladder,
)

__all__ = ["Arrivals", "SharedPrefix", "ladder"]


@dataclass(frozen=True, kw_only=True)
class SharedPrefix(OpenLoop):
    """Lengths in tokens. `groups` or `prompts` of 0 make every one its own."""

    groups: int = 150
    prompts: int = 5
    system_tokens: int = 6000
    question_tokens: int = 1200
    output_tokens: int = 1000
    output_spread: float = 0.05
    """Standard deviation of the output length, as a share of it."""
    _prompts: dict[tuple[int, int], Prompt] = field(default_factory=dict, repr=False)

    @property
    def longest_tokens(self) -> int:
        """See `Traffic`."""
        return self.system_tokens + self.question_tokens + self.output_tokens

    def drawn(self, at: float, number: int, rng: np.random.Generator) -> Arrival:
        """See `OpenLoop`."""
        group = int(rng.integers(self.groups)) if self.groups else number
        question = int(rng.integers(self.prompts)) if self.prompts else PER_STAGE + number
        output = drawn_length(self.output_tokens, self.output_spread, rng)
        prompt = self._prompt(group, question)
        return Arrival(at=at, prompt=prompt, output_tokens=output, max_tokens=output)

    def _prompt(self, group: int, question: int) -> Prompt:
        known = self._prompts.get((group, question))
        if known is None:
            system, asked = f"{self.id}/{group}", f"{self.id}/{group}.{question}"
            known = prompt_of(
                ((system, self.system_tokens), (asked, self.question_tokens)),
                block_tokens=self.block_tokens,
            )
            if self.groups and self.prompts:
                self._prompts[group, question] = known
        return known
