"""Which prefixes are hot: a bounded table of groups of prompts that begin alike.

A group is named by a block key, which stands for everything before it. Groups are counted at depths
of 8, 16, 32 ... blocks; a deeper one is counted only once its beginning came twice, so that prompts
of which each is its own cost one entry. Counts decay over about a minute. What a request belongs to
is the shallowest group that one endpoint can carry: a preamble that all share is too hot and gives
way to what follows it. Where even the deepest is too hot, it has several homes.
"""

import heapq
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from routing.core.table import Instance

DEPTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""In blocks: 512 tokens and more in chunks of 256 bytes, 128 and more in blocks of 16 tokens."""
MAX_GROUPS = 4096
AVERAGE_SECONDS = 60.0
LEAST_SEEN = 2
_LARGEST_GAIN = 1e9
_FORGOTTEN = 0.03
"""Share of one request's weight below which a group is dropped: after three and a half averages."""


class Group:
    """One prefix. Loads are in the table's inflated unit; only their ratios mean something."""

    __slots__ = (
        "carried",
        "depth",
        "homes",
        "is_too_hot",
        "key",
        "load",
        "moved_at",
        "prompt",
        "seen",
        "shared",
    )

    def __init__(self, key: int, depth: int) -> None:
        self.key = key
        self.depth = depth
        self.load = 0.0
        """Tokens of all requests that begin so."""
        self.carried = 0.0
        """Tokens of those that are governed by this group and by no deeper one."""
        self.seen = 0
        self.prompt = 0.0
        """Tokens of its prompts, the running mean."""
        self.shared = 0.0
        """Tokens that caches held of its prompts, the running mean of those that hit."""
        self.is_too_hot = False
        self.homes: tuple[Instance, ...] = ()
        self.moved_at = -math.inf


class GroupTable:
    """Counts what came; see the module for the rules."""

    def __init__(self) -> None:
        self._groups: dict[int, Group] = {}
        self._began_at: float | None = None
        self._gain = 1.0
        self.total = 0.0

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def find(self, keys: Sequence[int] | NDArray[np.uint64]) -> Group | None:
        """The group that governs a prompt; None where it is not known to be shared."""
        found, length, groups = None, len(keys), self._groups
        for depth in DEPTHS:
            if depth > length:
                break
            group = groups.get(int(keys[depth - 1]))
            if group is None or group.seen < LEAST_SEEN:
                break
            found = group
            if not group.is_too_hot:
                break
        return found

    def observe(self, keys: Sequence[int], *, tokens: float, now: float) -> Group | None:
        """Count a request that was sent; returns the group that governs it."""
        weight = tokens * self._gain_at(now)
        self.total += weight
        length, groups = len(keys), self._groups
        for depth in DEPTHS:
            if depth > length:
                break
            key = int(keys[depth - 1])
            group = groups.get(key)
            if group is None:
                if len(groups) >= MAX_GROUPS:
                    self._drop_lightest()
                group = groups[key] = Group(key, depth)
            group.load += weight
            group.seen += 1
            if group.seen < LEAST_SEEN:
                break
        governing = self.find(keys)
        if governing is not None:
            governing.carried += weight
        return governing

    def _gain_at(self, now: float) -> float:
        """Weights grow instead of all counts shrinking; both are the same decay."""
        if self._began_at is None:
            self._began_at = now
        self._gain = math.exp(min(max(now - self._began_at, 0.0) / AVERAGE_SECONDS, 500.0))
        if self._gain > _LARGEST_GAIN:
            self._deflate(now)
        return self._gain

    def _deflate(self, now: float) -> None:
        for group in self._groups.values():
            group.load /= self._gain
            group.carried /= self._gain
        self.total /= self._gain
        self._began_at, self._gain = now, 1.0

    def _drop_lightest(self) -> None:
        """Make room for a quarter of the table."""
        lightest = heapq.nsmallest(
            MAX_GROUPS // 4, self._groups.values(), key=lambda group: group.load
        )
        for group in lightest:
            del self._groups[group.key]

    def refresh(self, *, endpoints: int, tokens_per_request: float, now: float) -> None:
        """Drop what has not come for long; mark what one of so many endpoints cannot carry."""
        least = _FORGOTTEN * tokens_per_request * self._gain_at(now)
        bearable = self.total / max(1, endpoints)
        gone = []
        for group in self._groups.values():
            group.is_too_hot = group.load > bearable
            if group.load < least:
                gone.append(group.key)
        for key in gone:
            del self._groups[key]
        self._decay_totals(now)

    def _decay_totals(self, now: float) -> None:
        """What a group carried decays with everything else; nothing to do in inflated units."""
        if self._gain > math.sqrt(_LARGEST_GAIN):
            self._deflate(now)

    def share(self, group: Group) -> float:
        """Part of all tokens that a group carries by itself, 0 to 1."""
        return group.carried / self.total if self.total > 0 else 0.0

    def part(self, tokens: float) -> float:
        """Part of all tokens that so many of this moment are."""
        return tokens * self._gain / self.total if self.total > 0 else 0.0

    def forget(self) -> None:
        """Start again, when block keys change their meaning."""
        self._groups.clear()
        self.total = 0.0
