"""KV blocks of one engine: reference counts, prefix cache by chained keys, LRU eviction."""

from array import array
from collections.abc import Sequence

_END = 0


class BlockPool:
    """Blocks 1 to `total`. A block with a key stays findable after its last user left.

    Memory per block is about 130 bytes when every block is cached, whatever the prompts look like.
    """

    def __init__(self, total: int, *, record_removals: bool = False) -> None:
        self.total = total
        self.removed: list[int] = []
        """Keys that were evicted since the caller emptied the list (with `record_removals`)."""
        self._record = record_removals
        self._key_of = array("Q", bytes(8 * (total + 1)))
        self._users = array("I", bytes(4 * (total + 1)))
        self._by_key: dict[int, int] = {}
        # Unused blocks without a key; those above `_fresh` were never used.
        self._spare: list[int] = []
        self._fresh = 1
        # Unused blocks with a key form a ring through block 0, least recently used first.
        self._next = array("I", bytes(4 * (total + 1)))
        self._previous = array("I", bytes(4 * (total + 1)))
        self._idle = 0

    @property
    def available(self) -> int:
        """Blocks that `allocate` can hand out, cached ones included."""
        return len(self._spare) + self.total + 1 - self._fresh + self._idle

    @property
    def used_share(self) -> float:
        """Share of blocks that somebody uses, 0 to 1."""
        return 1.0 - self.available / self.total

    @property
    def cached(self) -> int:
        """Blocks that can be found by a key."""
        return len(self._by_key)

    def match(self, keys: Sequence[int], limit: int) -> list[int]:
        """Blocks of the longest cached run at the start of `keys`, at most `limit`."""
        found: list[int] = []
        get = self._by_key.get
        for key in keys[:limit]:
            block = get(key)
            if block is None:
                break
            found.append(block)
        return found

    def take(self, blocks: Sequence[int]) -> None:
        """Add a user to each block, so that none of them is evicted."""
        users = self._users
        for block in blocks:
            if not users[block]:
                self._unlink(block)
            users[block] += 1

    def allocate(self, count: int) -> list[int] | None:
        """`count` blocks with one user each, evicting what was unused longest; None if too few."""
        if count > self.available:
            return None
        spare, users = self._spare, self._users
        blocks: list[int] = []
        for _ in range(count):
            if spare:
                block = spare.pop()
            elif self._fresh <= self.total:
                block = self._fresh
                self._fresh += 1
            else:
                block = self._next[_END]
                self._unlink(block)
                self._forget(block)
            users[block] = 1
            blocks.append(block)
        return blocks

    def free(self, blocks: Sequence[int]) -> None:
        """Take a user from each block. Ends of chains become older than their beginnings."""
        users, key_of = self._users, self._key_of
        for block in reversed(blocks):
            users[block] -= 1
            if users[block]:
                continue
            if key_of[block]:
                self._link(block)
            else:
                self._spare.append(block)

    def register(self, block: int, key: int) -> bool:
        """Make a filled block findable. False when the key is cached in another block already."""
        if key in self._by_key or not key:
            return False
        self._by_key[key] = block
        self._key_of[block] = key
        return True

    def clear(self) -> None:
        """Forget every key. Blocks in use keep their users and are not shared any more."""
        key_of = self._key_of
        for block in self._by_key.values():
            key_of[block] = 0
            if not self._users[block]:
                self._unlink(block)
                self._spare.append(block)
        self._by_key.clear()
        self.removed.clear()

    def _forget(self, block: int) -> None:
        key = self._key_of[block]
        del self._by_key[key]
        self._key_of[block] = 0
        if self._record:
            self.removed.append(key)

    def _unlink(self, block: int) -> None:
        before, after = self._previous[block], self._next[block]
        self._next[before] = after
        self._previous[after] = before
        self._idle -= 1

    def _link(self, block: int) -> None:
        last = self._previous[_END]
        self._next[last] = block
        self._previous[block] = last
        self._next[block] = _END
        self._previous[_END] = block
        self._idle += 1
