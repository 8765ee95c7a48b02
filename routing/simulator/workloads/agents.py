"""Agents: conversations that grow by an answer and a tool's result with each turn.

A session is one agent of one of `kinds` applications, whose system prompt and tool list all its
sessions share, and its sub-agents, which share another. An agent's next prompt is its last one,
the answer to it, and what its tool returned; it comes after the tool has run. Sub-agents begin some
time after their session does, and nobody waits for them: which turn starts one is not modelled.
"""

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from routing.simulator.requests import BLOCK_TOKENS, Arrival, Chain, Stage
from routing.simulator.workloads.open_loop import PER_STAGE, times_of


@dataclass(frozen=True, kw_only=True)
class Agents:
    """Lengths in tokens, all but those of system prompts exponential around their means.

    The rate of a stage is of requests: sessions start at that rate divided by the mean number of
    requests in one, so that a stage's last turns come after its sessions have started.
    """

    id: str
    stages: tuple[Stage, ...]
    kinds: int = 4
    system_tokens: int = 6000
    task_tokens: int = 800
    tool_tokens: int = 700
    answer_tokens: int = 250
    turns: float = 8.0
    """Mean of an agent, geometric from 1."""
    sub_agents: float = 1.0
    """Mean of a session, Poisson."""
    sub_system_tokens: int = 3000
    sub_turns: float = 4.0
    pause_seconds: float = 2.0
    """Mean time that a tool runs, exponential."""
    most_tokens: int = 30_000
    """A conversation ends before its prompt and answer are longer."""
    block_tokens: int = BLOCK_TOKENS

    @property
    def longest_tokens(self) -> int:
        """See `Traffic`."""
        return self.most_tokens

    @property
    def requests_per_session(self) -> float:
        """Mean, if no conversation reaches `most_tokens`."""
        return self.turns + self.sub_agents * self.sub_turns

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`: the first turn of each agent, which its others follow."""
        asked = self.stages[stage]
        rate = (asked.rate_qps or 0.0) / self.requests_per_session
        times = times_of(replace(asked, rate_qps=rate), rng, "poisson", of=self.id)
        later: list[tuple[float, int, Arrival]] = []
        turn = itertools.count()
        for number, at in enumerate(times):
            while later and later[0][0] <= at:
                yield heapq.heappop(later)[2]
            session = f"{self.id}/{stage * PER_STAGE + number}"
            for arrival in self._session(session, at, rng):
                heapq.heappush(later, (arrival.at, next(turn), arrival))
        while later:
            yield heapq.heappop(later)[2]

    def _session(self, session: str, at: float, rng: np.random.Generator) -> Iterator[Arrival]:
        kind = int(rng.integers(self.kinds))
        system = (f"{self.id}/agent {kind}", self.system_tokens)
        yield self._conversation(session, system, at, self.turns, rng)
        system = (f"{self.id}/sub-agent {kind}", self.sub_system_tokens)
        for place in range(int(rng.poisson(self.sub_agents))):
            begins = at + float(rng.exponential(self.turns * self.pause_seconds))
            yield self._conversation(f"{session}.{place}", system, begins, self.sub_turns, rng)

    def _conversation(
        self,
        name: str,
        system: tuple[str, int],
        at: float,
        mean_turns: float,
        rng: np.random.Generator,
    ) -> Arrival:
        turns = self._turns(name, system, int(rng.geometric(1 / mean_turns)), rng)
        conversation = turns.pop()
        for turn in reversed(turns):
            pause = float(rng.exponential(self.pause_seconds))
            conversation = replace(turn, then=conversation, pause_seconds=pause)
        return replace(conversation, at=at)

    def _turns(
        self, name: str, system: tuple[str, int], count: int, rng: np.random.Generator
    ) -> list[Arrival]:
        """At least one; each with the keys that its answer will have in the next prompt."""
        chain = Chain(self.block_tokens)
        chain.add(*system)
        turns: list[Arrival] = []
        added = self.task_tokens
        for turn in range(count):
            heard, answer = _length(added, rng), _length(self.answer_tokens, rng)
            if turns and chain.tokens + heard + answer > self.most_tokens:
                break
            heard = max(1, min(heard, self.most_tokens - chain.tokens - answer))
            chain.add(f"{name} hears {turn}", heard)
            prompt = chain.prompt()
            chain.add(f"{name} says {turn}", answer)
            keys = tuple(chain.keys[len(prompt.keys) :])
            turns.append(
                Arrival(at=0.0, prompt=prompt, output_tokens=answer, session=name, answer_keys=keys)
            )
            added = self.tool_tokens
        return turns


def _length(mean: int, rng: np.random.Generator) -> int:
    return 1 + int(rng.exponential(mean))
