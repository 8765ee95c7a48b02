"""What each endpoint carries of a pool's load, and of the memory that prefixes take, against its
fair share.

Two things are shared out: work, in output tokens and parts of prompts, by the learned speeds; and
KV memory, in tokens of prompts that live at an endpoint, by capacity. Which of them counts follows
from how much of the pool's memory its prefixes take: below a tenth it is work alone, from three
tenths on memory alone. Where memory is short, an endpoint that got a few groups more than others by
chance is full first, and its traffic then pushes out what the others hold.

Prompts of no group count where they went, for about a minute: in a pool that was just started
nearly all are such, and placing them by chance would decide where groups live.
"""

import math

import numpy as np

from routing.core.table import EndpointTable, Flags, Floats
from routing.producers.homes import AVERAGE_SECONDS, GroupTable

LOOSE, TIGHT = 0.1, 0.3
"""Shares of the pool's KV memory that its prefixes take; see the module."""


class Burden:
    """Arrays over the rows of one table; shares are of what the whole pool carries."""

    def __init__(self) -> None:
        self.fair: Floats = np.zeros(0)
        self.carried: Floats = np.zeros(0)
        self._memory: Floats = np.zeros(0)
        self._room: Floats = np.zeros(0)
        self._capacity = self._taken = 0.0
        self._strange_tokens: Floats = np.zeros(0)
        self._strange_prompts: Floats = np.zeros(0)
        self.memory_counts = 0.0
        """0 to 1: how far memory, not work, decides who lacks something."""

    def follow(self, table: EndpointTable) -> None:
        """Another table: its rows are other endpoints."""
        self._strange_tokens = np.zeros(len(table))
        self._strange_prompts = np.zeros(len(table))

    def begin(self, table: EndpointTable, usable: Flags, fair: Floats, groups: GroupTable) -> None:
        """Start counting again, from what strangers brought."""
        self.fair = fair
        capacity = np.where(usable, np.nan_to_num(table.capacity_tokens), 0.0)
        self._capacity = float(capacity.sum())
        self._room = capacity / max(1.0, self._capacity)
        self.carried = groups.part(1.0) * self._strange_tokens
        self._memory = self._strange_prompts.copy()

    def weigh(self) -> None:
        """All groups are counted: see how short memory is."""
        self._taken = float(self._memory.sum())
        share = self._taken / self._capacity if self._capacity > 0 else 0.0
        self.memory_counts = min(1.0, max(0.0, (share - LOOSE) / (TIGHT - LOOSE)))

    def add(self, row: int, *, share: float, prompt: float) -> None:
        """A group came to live at an endpoint; both are negative when it leaves."""
        self.carried[row] += share
        self._memory[row] += prompt

    def add_stranger(self, row: int, *, tokens: float, prompt: float, groups: GroupTable) -> float:
        """A prompt of no group was sent to an endpoint; returns how much less it lacks now."""
        self._strange_tokens[row] += tokens
        self._strange_prompts[row] += prompt
        share = groups.part(tokens)
        self.add(row, share=share, prompt=prompt)
        self._taken += prompt
        counts = self.memory_counts
        return (1.0 - counts) * share + counts * prompt / max(1.0, self._taken)

    def decay(self, seconds: float) -> None:
        """Time passed; strangers are forgotten as fast as groups."""
        left = math.exp(-seconds / AVERAGE_SECONDS)
        self._strange_tokens *= left
        self._strange_prompts *= left

    def forget(self) -> None:
        """Caches are empty."""
        self._strange_tokens[:] = 0.0
        self._strange_prompts[:] = 0.0

    def ratios(self) -> Floats:
        """Work carried over the fair share of it."""
        total = float(self.carried.sum())
        if total <= 0:
            return np.zeros(len(self.fair))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self.carried / (self.fair * total)
        # Nothing is owed by an endpoint that may carry nothing and does not.
        return np.where(np.isnan(ratios), 0.0, ratios)

    def lacking(self) -> Floats:
        """How much of the pool's whole burden each endpoint could take more, to have its share."""
        lacking: Floats = self.fair * max(float(self.carried.sum()), 1e-12) - self.carried
        total = float(self._memory.sum())
        if self.memory_counts > 0 and total > 0:
            lacking *= 1.0 - self.memory_counts
            lacking += self.memory_counts * (self._room - self._memory / total)
        return lacking
