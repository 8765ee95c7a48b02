"""Which instances were recently sent which blocks: the approximate index of other routers.

One dictionary maps a block key to a bit mask of slots; each instance has its own LRU list. Keys are
chained, so a dictionary of them is a radix tree: a key stands for the whole prompt up to it. Leaves
leave first, because a prompt's keys are touched from the last to the first.

It differs from `prefix_index` in what it promises: it never hears of failures, evictions or the
size of the engine's cache, and its entries may have a lifetime.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from routing.core.table import EndpointTable, Floats, Instance

MOST_BLOCKS = 1_000_000
"""Bound over all instances of one index; each gets an equal share at most."""


class _Slot:
    __slots__ = ("bit", "keys", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.bit = 1 << number
        self.keys: OrderedDict[int, float] = OrderedDict()
        """Block key to the time of its last use, oldest first."""


class RecentBlocks:
    """See the module. It follows the table by itself: instances that are gone are forgotten."""

    def __init__(self, *, capacity_blocks: int, lifetime_seconds: float | None = None) -> None:
        self._capacity = max(1, capacity_blocks)
        self._lifetime = lifetime_seconds
        self._masks: dict[int, int] = {}
        self._slots: dict[Instance, _Slot] = {}
        self._free: list[int] = []
        self._table: EndpointTable | None = None
        self._slot_of_row = np.zeros(0, dtype=np.intp)
        self._limit = self._capacity
        self._next_expiry = -np.inf

    def __len__(self) -> int:
        return sum(len(slot.keys) for slot in self._slots.values())

    def forget(self) -> None:
        """Believe all caches empty."""
        for slot in self._slots.values():
            self._drop_all(slot)

    def depths(self, table: EndpointTable, keys: Sequence[int], *, now: float) -> Floats:
        """How many leading blocks each row of the table holds."""
        self._follow(table)
        self._expire(now)
        found: Floats = np.zeros(len(self._slots) + len(self._free))
        self._walk(found, keys)
        rows: Floats = found[self._slot_of_row]
        return rows

    def _walk(self, found: Floats, keys: Sequence[int]) -> None:
        last: int | None = self._masks.get(keys[0], 0) if keys else 0
        alive = last or 0
        for depth, mask in enumerate(map(self._masks.get, keys)):
            # Blocks of one prefix mostly share one mask object.
            if mask is last:
                continue
            last = mask
            still = alive & (mask or 0)
            if still != alive:
                _set_depth(found, alive & ~still, depth)
                alive = still
                if not alive:
                    return
        _set_depth(found, alive, len(keys))

    def insert(
        self,
        table: EndpointTable,
        instance: Instance,
        keys: Sequence[int],
        *,
        now: float,
        capacity_blocks: float = np.inf,
    ) -> None:
        """Remember that an instance was sent these blocks; it holds at most `capacity_blocks`."""
        self._follow(table)
        slot = self._slots.get(instance)
        if slot is None:
            return
        known, masks, bit = slot.keys, self._masks, slot.bit
        before, after = -1, -1
        for key in reversed(keys):
            if key in known:
                known.move_to_end(key)
            else:
                mask = masks.get(key, 0)
                if mask != before:
                    before, after = mask, mask | bit
                # One object for neighbours with the same mask.
                masks[key] = after
            known[key] = now
        limit = min(self._limit, capacity_blocks)
        while len(known) > limit:
            self._drop(slot, known.popitem(last=False)[0])

    def _follow(self, table: EndpointTable) -> None:
        if table is self._table:
            return
        self._table = table
        alive = set(table.instances)
        for instance in [known for known in self._slots if known not in alive]:
            slot = self._slots.pop(instance)
            self._drop_all(slot)
            self._free.append(slot.number)
        for instance in table.instances:
            if instance not in self._slots:
                number = self._free.pop() if self._free else len(self._slots)
                self._slots[instance] = _Slot(number)
        numbers = [self._slots[instance].number for instance in table.instances]
        self._slot_of_row = np.array(numbers, dtype=np.intp)
        self._limit = max(1, min(self._capacity, MOST_BLOCKS // max(1, len(numbers))))

    def _expire(self, now: float) -> None:
        """Once a second, drop what is older than the lifetime."""
        if self._lifetime is None or now < self._next_expiry:
            return
        self._next_expiry = now + 1.0
        oldest = now - self._lifetime
        for slot in self._slots.values():
            while slot.keys and next(iter(slot.keys.values())) < oldest:
                self._drop(slot, slot.keys.popitem(last=False)[0])

    def _drop_all(self, slot: _Slot) -> None:
        for key in slot.keys:
            self._drop(slot, key)
        slot.keys.clear()

    def _drop(self, slot: _Slot, key: int) -> None:
        rest = self._masks[key] & ~slot.bit
        if rest:
            self._masks[key] = rest
        else:
            del self._masks[key]


def _set_depth(depths: Floats, slots: int, depth: int) -> None:
    while slots > 0:
        lowest = slots & -slots
        depths[lowest.bit_length() - 1] = depth
        slots ^= lowest
