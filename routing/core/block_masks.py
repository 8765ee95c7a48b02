"""Who holds which block: one dictionary from block key to a bit mask of instances.

Each instance (slot) has `PLANES` bits, one per way of knowing: believed from this router's own
decisions, in the device's memory by the engine's events, and in two kinds of slower memory. One
walk over a prompt's keys finds every instance's match, whatever the size of the pool. Equal masks
are one object, because neighbouring blocks mostly share theirs: it saves memory and lets the walk
compare by identity.

Keys have 60 bits (`short_keys`): two digits of Python's integers instead of three, 16 bytes less
per block.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from routing.core.prompt import BlockKeys
from routing.core.table import Floats

PLANES = 4
BELIEVED, DEVICE, HOST, REMOTE = range(PLANES)
KEY_MASK = (1 << 60) - 1
"""A chained key loses its highest bits in the dictionary."""
_MASK = np.uint64(KEY_MASK)
MAX_INTERNED = 65_536
_MAX_FOLDED = 4_096
_FEW = 8
_STRIDE = 64
"""Blocks that are looked up at once."""


def short_keys(keys: BlockKeys) -> list[int]:
    """Keys of a prompt as this table has them."""
    found: list[int] = (keys & _MASK).tolist()
    return found


class Match(msgspec.Struct, frozen=True):
    """Leading blocks that each slot holds, shape `(slots,)`."""

    depths: Floats
    """In any memory."""
    slower: Floats | None
    """Of these, only in slower memory: shape `(2, slots)`, host and remote; `None`: none at all."""


class BlockMasks:
    """The dictionary and its walk; producers set and clear bits of `masks`, by `intern`."""

    def __init__(self) -> None:
        self.masks: dict[int, int] = {}
        self.interned: dict[int, int] = {}
        self.slots = 0
        self._planes = 0
        """Bits of planes above the first that were ever used, as numbers 1, 2, 4."""
        self._dead = 0
        self._folded: dict[int, int] = {}
        self._ones = 0

    def __len__(self) -> int:
        return len(self.masks)

    def reserve(self, slots: int) -> None:
        """There are slots 0 to `slots` - 1."""
        if slots > self.slots:
            self.slots = slots
            self._ones = int("1".zfill(PLANES) * slots, 2)

    @property
    def has_tiers(self) -> bool:
        """Somebody holds blocks in slower memory."""
        return self._planes >= 1 << HOST

    @property
    def believed(self) -> int:
        """The bits of the first plane, of all slots."""
        return self._ones

    def use(self, plane: int) -> None:
        """Bits of this plane will be set."""
        self._planes |= 1 << plane

    def intern(self, mask: int) -> int:
        """The one object for a mask. Call it when a mask changes, not for each block."""
        return self.interned.setdefault(mask, mask)

    def bound_interned(self) -> None:
        """Masks that are in use keep their objects; others equal to them may get a second one."""
        if len(self.interned) > MAX_INTERNED:
            self.interned.clear()

    def mark_dead(self, bits: int) -> None:
        """These bits count no more, until `revive`."""
        self._dead |= bits
        self._folded.clear()

    def revive(self, bits: int) -> None:
        """No mask has these bits any more: they may be set again."""
        self._dead &= ~bits
        self._folded.clear()

    def unset(self, key: int, bits: int) -> int:
        """Take bits from a block; returns those that it had."""
        mask = self.masks.get(key, 0)
        had = mask & bits
        if had:
            rest = mask ^ had
            if rest:
                self.masks[key] = self.interned.setdefault(rest, rest)
            else:
                del self.masks[key]
        return had

    def unset_all(self, keys: Iterable[int], bit: int) -> None:
        """Take one bit from many blocks; neighbours mostly share a mask, see `intern`."""
        masks, before, after = self.masks, -1, 0
        for key in keys:
            mask = masks.get(key, 0)
            if not mask & bit:
                continue
            if mask is not before:
                before, after = mask, mask ^ bit
                after = after and self.intern(after)
            if after:
                masks[key] = after
            else:
                del masks[key]

    def has(self, key: int) -> bool:
        """Anybody knows of this block; `key` is a whole one, before `short_keys`."""
        return key & KEY_MASK in self.masks

    def holds(self, key: int, bits: int) -> bool:
        """One of these bits is set for a block; `key` is a whole one."""
        return bool(self.masks.get(key & KEY_MASK, 0) & bits)

    def forget_oldest(self, count: int) -> list[int]:
        """Drop engines' bits of the blocks that entered first; returns their masks before.

        What this router believes stays: it has a bound of its own.
        """
        found = []
        for key, mask in list(islice(self.masks.items(), count)):
            del self.masks[key]
            rest = mask & self._ones
            if rest:
                self.masks[key] = self.intern(rest)
            found.append(mask)
        return found

    def match(self, keys: Sequence[int], *, worth: Callable[[int], float] = float) -> Match:
        """How many leading blocks each slot holds; a hole ends its match.

        Few depths are found, so `worth` makes of them what is wanted instead, once for each. Leave
        it out where slower memory is used.
        """
        depths: Floats = np.zeros(self.slots)
        if not keys:
            return Match(depths, None)
        if not self._planes:
            self._walk_believed(keys, depths, worth)
            return Match(depths, None)
        segments = self._walk(keys, depths, worth)
        slower = None
        if self.has_tiers:
            slower = self._slower(segments, depths)
        return Match(depths, slower)

    def _runs(self, keys: Sequence[int]) -> Iterator[tuple[int, int | None]]:
        """Where the mask becomes another one, and which.

        Blocks of one prefix mostly share one mask object: a stride of them is looked at as a whole.
        """
        get = self.masks.get
        last: object = self
        for start in range(0, len(keys), _STRIDE):
            found = list(map(get, keys[start : start + _STRIDE]))
            if found[-1] is last and found.count(found[-1]) == len(found):
                continue
            for depth, mask in enumerate(found, start):
                if mask is not last:
                    last = mask
                    yield depth, mask

    def _walk_believed(
        self, keys: Sequence[int], depths: Floats, worth: Callable[[int], float]
    ) -> None:
        alive = -1
        for depth, mask in self._runs(keys):
            still = alive & (mask or 0)
            if still != alive:
                if depth:
                    self._set(depths, alive & ~still, worth(depth))
                alive = still
                if not alive:
                    return
        self._set(depths, alive, worth(len(keys)))

    def _walk(
        self, keys: Sequence[int], depths: Floats, worth: Callable[[int], float]
    ) -> list[tuple[int, int]]:
        """Like the other, where any plane's bit counts; returns where which mask begins."""
        segments: list[tuple[int, int]] = []
        alive = self._ones
        for depth, mask in self._runs(keys):
            held = 0 if mask is None else self._folded.get(mask) or self._fold(mask)
            segments.append((depth, mask or 0))
            still = alive & held
            if still != alive:
                if depth:
                    self._set(depths, alive & ~still, worth(depth))
                alive = still
                if not alive:
                    return segments
        self._set(depths, alive, worth(len(keys)))
        return segments

    def _fold(self, mask: int) -> int:
        """Bit `PLANES * slot` where any living bit of the slot is set."""
        if len(self._folded) > _MAX_FOLDED:
            self._folded.clear()
        live = mask & ~self._dead
        held = (live | live >> DEVICE | live >> HOST | live >> REMOTE) & self._ones
        self._folded[mask] = held
        return held

    def _slower(self, segments: list[tuple[int, int]], depths: Floats) -> Floats | None:
        """Blocks within each slot's depth that no faster memory holds."""
        found: Floats = np.zeros((2, self.slots))
        deepest = float(depths.max())
        for position, (start, mask) in enumerate(segments):
            if start >= deepest:
                break
            live = mask & ~self._dead
            fast = (live | live >> DEVICE) & self._ones
            host = live >> HOST & self._ones & ~fast
            remote = live >> REMOTE & self._ones & ~fast & ~host
            end = segments[position + 1][0] if position + 1 < len(segments) else deepest
            for line, bits in enumerate((host, remote)):
                if bits:
                    flags = self._flags(bits)
                    found[line, flags] += np.clip(depths[flags], start, end) - start
        return found if found.any() else None

    def _flags(self, bits: int) -> NDArray[np.bool_]:
        raw = bits.to_bytes((PLANES * self.slots + 7) // 8, "little")
        unpacked = np.unpackbits(np.frombuffer(raw, dtype=np.uint8), bitorder="little")
        return unpacked[: PLANES * self.slots : PLANES].view(np.bool_)

    def _set(self, values: Floats, bits: int, value: float) -> None:
        if bits.bit_count() > _FEW:
            values[self._flags(bits)] = value
            return
        while bits:
            lowest = bits & -bits
            values[(lowest.bit_length() - 1) // PLANES] = value
            bits ^= lowest
