"""Approximate prefix index: which instances probably hold which blocks, from our own decisions.

Beliefs are one plane of the shared `BlockMasks`. Each instance has an LRU list bounded by its KV
capacity; keys are touched from the deepest to the first, so that a prefix outlives what follows it.

An entry of a request in flight is *speculative*: it counts at once, so that a burst of siblings
stays together, and is withdrawn if the request fails before its prompt was computed.
"""

from collections import OrderedDict
from collections.abc import Sequence

from routing.core.block_masks import PLANES, BlockMasks
from routing.core.table import Floats

MAX_ENTRIES = 4_000_000
"""Bound over all instances; each gets an equal share of it at most."""
_CONFIRMED = 0


class _Holdings:
    __slots__ = ("anonymous", "keys", "limit")

    def __init__(self, limit: int) -> None:
        self.keys: OrderedDict[int, int] = OrderedDict()
        """Block key to the number of the lease that hopes for it, or `_CONFIRMED`; oldest first."""
        self.limit = limit
        self.anonymous = 0


class PrefixIndex:
    """Slots are handed out by `add` and stay until `remove`."""

    def __init__(self, blocks: BlockMasks | None = None) -> None:
        self.blocks = BlockMasks() if blocks is None else blocks
        self._slots: list[_Holdings | None] = []

    def entries(self, slot: int) -> int:
        """Blocks believed to be at an instance."""
        holdings = self._slots[slot]
        return 0 if holdings is None else len(holdings.keys)

    def add(self, *, capacity_blocks: int) -> int:
        """A slot for an instance with an empty cache."""
        fresh = _Holdings(max(1, capacity_blocks))
        for slot, holdings in enumerate(self._slots):
            if holdings is None:
                self._slots[slot] = fresh
                return slot
        self._slots.append(fresh)
        self.blocks.reserve(len(self._slots))
        return len(self._slots) - 1

    def set_capacity(self, slot: int, blocks: int) -> None:
        """Follow the size that the engine reports; the oldest entries go if it is smaller."""
        holdings = self._slots[slot]
        if holdings is not None:
            share = MAX_ENTRIES // max(1, len(self._slots))
            holdings.limit = max(1, min(blocks, share))
            self._evict(slot, holdings)

    def clear(self, slot: int) -> None:
        """The instance's cache is empty."""
        holdings = self._slots[slot]
        if holdings is not None:
            self.blocks.unset_all(holdings.keys, 1 << PLANES * slot)
            holdings.keys.clear()

    def remove(self, slot: int) -> None:
        """The instance is gone; its slot may be used again."""
        self.clear(slot)
        self._slots[slot] = None

    def match(self, keys: Sequence[int]) -> Floats:
        """How many leading blocks each slot holds, shape `(slots,)`."""
        return self.blocks.match(keys).depths

    def insert(self, slot: int, keys: Sequence[int], *, lease: int = _CONFIRMED) -> None:
        """Believe that an instance holds these blocks; with a lease number it is a hope."""
        holdings = self._slots[slot]
        if holdings is None:
            return
        known, masks, bit = holdings.keys, self.blocks.masks, 1 << PLANES * slot
        touch = known.move_to_end
        # Neighbouring blocks mostly share one mask: one object for all of them saves memory and
        # lets `match` compare by identity.
        before, after = -1, -1
        for key in reversed(keys):
            state = known.get(key)
            if state is None:
                mask = masks.get(key, 0)
                if mask is not before:
                    before, after = mask, self.blocks.intern(mask | bit)
                masks[key] = after
                known[key] = lease
            else:
                # An entry that is certain does not become a hope again.
                if state != _CONFIRMED:
                    known[key] = lease
                touch(key)
        self.blocks.bound_interned()
        if len(known) > holdings.limit:
            self._evict(slot, holdings)

    def confirm(self, slot: int, keys: Sequence[int]) -> None:
        """The prompt was computed there: hopes become entries."""
        holdings = self._slots[slot]
        if holdings is None:
            return
        known = holdings.keys
        for key in keys:
            state = known.get(key)
            if state is None:
                # Evicted meanwhile, or never hoped for (the decode end of a pair).
                self.insert(slot, keys)
                return
            if state != _CONFIRMED:
                known[key] = _CONFIRMED

    def withdraw(self, slot: int, keys: Sequence[int], *, lease: int) -> None:
        """The request failed before its prompt was computed: drop what only it hoped for."""
        holdings = self._slots[slot]
        if holdings is None:
            return
        for key in keys:
            if holdings.keys.get(key) == lease:
                del holdings.keys[key]
                self.blocks.unset(key, 1 << PLANES * slot)

    def occupy(self, slot: int, blocks: int) -> None:
        """Output takes blocks that no prompt will match, and pushes out older ones."""
        holdings = self._slots[slot]
        if holdings is None:
            return
        for _ in range(min(blocks, holdings.limit)):
            # Negative keys cannot be block keys; they age and leave like any other.
            holdings.anonymous -= 1
            holdings.keys[holdings.anonymous] = _CONFIRMED
        self._evict(slot, holdings)

    def _evict(self, slot: int, holdings: _Holdings) -> None:
        known = holdings.keys
        over = [known.popitem(last=False)[0] for _ in range(len(known) - holdings.limit)]
        self.blocks.unset_all(over, 1 << PLANES * slot)
