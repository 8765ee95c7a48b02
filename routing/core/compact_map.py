"""A map of 64-bit numbers in arrays: about 25 bytes an entry, where a dictionary needs 130.

Entries enter a small dictionary, fast, and are moved in bulk into an open-addressing table. The
table grows a piece at a time: while it does, the table before it answers for what was not moved
yet. No step takes longer than a few thousand entries do.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Places = NDArray[np.intp]

SPILL = 8192
"""Entries of the dictionary that are moved at once: less than a millisecond."""
_FIRST_SIZE = 2 * SPILL
_FULL, _GROWTH = 0.7, 1.7
_PIECE = 8 * SPILL
"""Places of the table before that are moved at once: it is empty before the next one is full."""
_FEW = 48
_WORD = (1 << 64) - 1
_MIX = 0x9E3779B97F4A7C15
_ZERO = 0xD6E8FEB86659FD93
"""Stands for the number 0, which marks a free place."""


class _Table:
    """Linear probing; a name and its value stand side by side. Value 0 was deleted.

    A place is the position of a name in `words`: an even number.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.words: Words = np.zeros(2 * size, dtype=np.uint64)
        # Reading one element of a memoryview costs a third of reading one of an array.
        self._words: memoryview[Any] = self.words.data
        self._end = 2 * size
        self.used = 0
        """Places taken, also by deleted entries."""

    def find(self, name: int) -> int:
        """The place of a name, -1 if it has none."""
        words, end = self._words, self._end
        place = (((name * _MIX & _WORD) >> 32) * self.size >> 32) * 2
        while (found := words[place]) != name:
            if not found:
                return -1
            place += 2
            if place == end:
                place = 0
        return place

    def value(self, place: int) -> int:
        """What stands at a place."""
        found: int = self._words[place + 1]
        return found

    def delete(self, place: int) -> None:
        """Keep the name, so that what was put behind it is still found."""
        self._words[place + 1] = 0

    def put(self, names: Words, values: Words, *, replace: bool) -> None:
        """Enter many names; those that have a value keep it unless `replace`."""
        at = self._places(names) + 1
        if not replace:
            free = np.flatnonzero(self.words.take(at) == 0)
            at, values = at.take(free), values.take(free)
        self.words[at] = values

    def _places(self, names: Words) -> Places:
        """Where names are, after those were entered that were not there."""
        words, end = self.words, self._end
        homes = ((names * np.uint64(_MIX)) >> np.uint64(32)) * np.uint64(self.size)
        wanted: Places = (homes >> np.uint64(32)).astype(np.intp) * 2
        places, left = wanted, np.arange(len(names))
        while len(left) > _FEW:
            found = words.take(wanted)
            free = (found == 0).nonzero()[0]
            # Of several that want one place the last one gets it.
            words[wanted.take(free)] = names.take(free)
            known = int(np.count_nonzero(found == names))
            others = (words.take(wanted) != names).nonzero()[0]
            self.used += len(names) - len(others) - known
            names, left = names.take(others), left.take(others)
            wanted = wanted.take(others) + 2
            wanted[wanted == end] = 0
            places[left] = wanted
        # Long probes of a few entries cost less one by one.
        for position, place, name in zip(
            left.tolist(), wanted.tolist(), names.tolist(), strict=True
        ):
            places[position] = self._enter(name, place)
        return places

    def _enter(self, name: int, place: int) -> int:
        words = self._words
        while (found := words[place]) and found != name:
            place += 2
            if place == self._end:
                place = 0
        if not found:
            words[place] = name
            self.used += 1
        return place


class CompactMap:
    """`recent` may be filled directly; call `settle` after it."""

    def __init__(self, *, is_kept: Callable[[int], bool] | None = None) -> None:
        """`is_kept` says of a value whether anybody needs it.

        It is asked after `doubt`, while entries are moved for the next growth.
        """
        self.recent: dict[int, int] = {}
        self._is_kept = is_kept
        self._is_doubted = False
        self._table = _Table(_FIRST_SIZE)
        self._before: _Table | None = None
        self._moved = 0
        """Places of the table before that were moved."""

    def __len__(self) -> int:
        """Entries; too high by what was deleted since the last growth."""
        before = 0 if self._before is None else self._before.used
        return len(self.recent) + self._table.used + before

    @property
    def bytes(self) -> int:
        """Memory of the tables."""
        tables = (self._table, self._before)
        return sum(16 * table.size for table in tables if table is not None)

    def get(self, name: int) -> int | None:
        """The value of a name."""
        value = self.recent.get(name)
        if value is not None:
            return value
        name = name & _WORD or _ZERO
        place = self._table.find(name)
        if place >= 0:
            return self._table.value(place) or None
        if self._before is not None:
            place = self._before.find(name)
            if place >= 0:
                return self._before.value(place) or None
        return None

    def delete(self, name: int) -> None:
        """Forget a name; one that is not there is no error."""
        self.recent.pop(name, None)
        name = name & _WORD or _ZERO
        for table in (self._table, self._before):
            if table is not None and (place := table.find(name)) >= 0:
                table.delete(place)

    def update(self, entries: Iterable[tuple[int, int]]) -> None:
        """Enter names and values; 0 is no value."""
        self.recent.update(entries)
        if len(self.recent) >= SPILL:
            self.settle()

    def doubt(self) -> None:
        """Values may be there that nobody needs any more."""
        self._is_doubted = True

    def settle(self) -> None:
        """Move the recent entries into the table, and a piece of the table before."""
        count = len(self.recent)
        if self._table.used + count > _FULL * self._table.size:
            self._finish_move()
            # The room that live entries need; how many are live is known after the move only.
            self._before = self._table
            entries = self._table.used + count
            self._table = _Table(int(_GROWTH / _FULL * entries))
            self._moved = 0
        names, values = _words(self.recent), _words(self.recent.values())
        names = np.where(names == 0, np.uint64(_ZERO), names)
        self._table.put(names, values, replace=True)
        self.recent.clear()
        self._move_piece()

    def clear(self) -> None:
        """Forget everything."""
        self.recent.clear()
        self._table, self._before = _Table(_FIRST_SIZE), None

    def _finish_move(self) -> None:
        while self._before is not None:
            self._move_piece()

    def _move_piece(self) -> None:
        before = self._before
        if before is None:
            return
        end = self._moved + _PIECE
        names, values = before.words[2 * self._moved : 2 * end].reshape(-1, 2).T
        live = values != 0
        names, values = names[live], values[live]
        if self._is_doubted and self._is_kept is not None:
            kept = np.fromiter(map(self._is_kept, values.tolist()), np.bool_, len(values))
            names, values = names[kept], values[kept]
        self._table.put(names, values, replace=False)
        self._moved = end
        if end >= before.size:
            self._before, self._is_doubted = None, False


def _words(numbers: Collection[int]) -> Words:
    try:
        return np.fromiter(numbers, np.uint64, len(numbers))
    except OverflowError:
        return np.fromiter((number & _WORD for number in numbers), np.uint64, len(numbers))
