"""The load of the published runs: inference-perf's shared prefixes.

As its sources have it: all prompts are made once and shuffled; every stage sends exactly
`rate x seconds` requests and takes the prompts in that order from the beginning. So the first
stage of 15 requests/s x 50 s sends each of 150 x 5 prompts once, and a stage of 60 requests
repeats the first 60.
"""

from collections.abc import Iterator

import numpy as np

from routing.simulator.published.tables import Traffic
from routing.simulator.requests import BLOCK_TOKENS, Arrival, Prompt, Stage, prompt_of

ORDER_SEED = 20_260_509
"""Of the shuffle; the published one is not known."""


class PublishedLoad:
    """A workload; see the module. `keep` thins it: what a part of the replicas sees."""

    def __init__(
        self, name: str, traffic: Traffic, stages: tuple[Stage, ...], *, keep: float = 1.0
    ) -> None:
        self.id, self.stages = name, stages
        self.block_tokens = BLOCK_TOKENS
        self._traffic, self._keep = traffic, keep
        self._prompts: dict[int, Prompt] = {}
        count = traffic.groups * traffic.prompts
        self._order = np.random.default_rng(ORDER_SEED).permutation(count).tolist()

    @property
    def longest_tokens(self) -> int:
        """Prompt and answer of a request."""
        known = self._traffic
        return known.system_tokens + known.question_tokens + known.output_tokens

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`. A stage without rate or length raises ValueError."""
        rate, seconds = self.stages[stage].rate_qps, self.stages[stage].seconds
        if not rate or not seconds:
            raise ValueError(f"Stage '{self.stages[stage].name}' of '{self.id}' has no rate.")
        at, is_random = 0.0, self._traffic.arrivals == "poisson"
        for position in range(round(rate * seconds)):
            at += float(rng.exponential(1 / rate)) if is_random else 1 / rate
            if self._keep < 1.0 and rng.random() >= self._keep:
                continue
            yield Arrival(
                at=at,
                prompt=self._prompt(self._order[position % len(self._order)]),
                output_tokens=self._traffic.output_tokens,
                max_tokens=self._traffic.output_tokens,
            )

    def _prompt(self, number: int) -> Prompt:
        known = self._prompts.get(number)
        if known is None:
            group, question = divmod(number, self._traffic.prompts)
            system = (f"{self.id}/{group}", self._traffic.system_tokens)
            asked = (f"{self.id}/{group}.{question}", self._traffic.question_tokens)
            known = self._prompts[number] = prompt_of((system, asked))
        return known
