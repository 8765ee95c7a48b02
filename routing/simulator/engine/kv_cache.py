"""KV blocks of one replica: shared by key, counted where nobody can share them, LRU eviction.

`free + idle + shared + private = total` always holds. A block that only one sequence can use (of an
unfinished chunk, or of an answer that is still growing) is a number; a block with a key is found
again by others, and after its last user left it stays until room is needed.
"""

from collections import OrderedDict
from collections.abc import Sequence


class KvCache:
    """All sizes in blocks."""

    def __init__(self, total: int, *, tells: bool = False) -> None:
        self.total = self.free = total
        self.private = 0
        self.idle: OrderedDict[int, None] = OrderedDict()
        """Keys of blocks without a user, longest unused first."""
        self.shared: dict[int, int] = {}
        """Users of each block with a key."""
        self._tells = tells
        self.stored: list[int] = []
        self.removed: list[int] = []
        """Keys that came and went since the caller emptied the lists (with `tells`)."""

    @property
    def available(self) -> int:
        """What `allocate` can give."""
        return self.free + len(self.idle)

    @property
    def used_share(self) -> float:
        """Share of blocks with a user, 0 to 1."""
        return 1.0 - self.available / self.total

    def match(self, keys: Sequence[int], limit: int) -> int:
        """Leading blocks that are here, at most `limit`."""
        shared, idle = self.shared, self.idle
        for position, key in enumerate(keys):
            if position == limit or (key not in shared and key not in idle):
                return position
        return min(limit, len(keys))

    def take(self, keys: Sequence[int]) -> None:
        """One user more of blocks that are here."""
        shared, idle = self.shared, self.idle
        for key in keys:
            users = shared.get(key)
            if users is None:
                del idle[key]
                shared[key] = 1
            else:
                shared[key] = users + 1

    def allocate(self, count: int) -> bool:
        """Private blocks, evicting what was unused longest; false, and nothing done, if too few."""
        missing = count - self.free
        if missing > 0:
            if missing > len(self.idle):
                return False
            for _ in range(missing):
                key, _ = self.idle.popitem(last=False)
                if self._tells:
                    self.removed.append(key)
            self.free += missing
        self.free -= count
        self.private += count
        return True

    def publish(self, keys: Sequence[int]) -> list[int]:
        """Private blocks become findable, one user each; returns those that now are shared.

        A key that is here already stays where it is, and the caller's block stays private.
        """
        shared, idle = self.shared, self.idle
        published = [key for key in keys if key not in shared and key not in idle]
        for key in published:
            shared[key] = 1
        self.private -= len(published)
        if self._tells:
            self.stored += published
        return published

    def leave(self, keys: Sequence[int], private: int) -> None:
        """A user less of each, and private blocks back. Ends of chains are evicted first."""
        shared, idle = self.shared, self.idle
        for key in reversed(keys):
            users = shared[key] - 1
            if users:
                shared[key] = users
            else:
                del shared[key]
                idle[key] = None
        self.private -= private
        self.free += private

    def clear(self) -> None:
        """Forget everything, users too: the process is a new one."""
        self.free, self.private = self.total, 0
        self.idle.clear()
        self.shared.clear()
        self.stored.clear()
        self.removed.clear()
