"""Stored events whose parent is unknown: kept until it comes, within a bound."""

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import msgspec

from routing.core.kv_events import Stored

MAX_WAITING_BLOCKS = 20_000
"""Of one publisher; 320,000 tokens in blocks of 16."""
MAX_WAITING_EVENTS = 4_096
"""Of one publisher. While it decodes, an engine tells each block in an event of its own; with both
bounds 5 MB wait at most."""


class WaitingEvents:
    """By the parent's hash, oldest first."""

    def __init__(self) -> None:
        self._by_parent: OrderedDict[Any, list[Stored]] = OrderedDict()
        self._removed: dict[Any, bool] = {}
        """Hashes of blocks that wait; true when they were removed meanwhile."""
        self.blocks = 0
        self._events = 0

    def __bool__(self) -> bool:
        return bool(self._by_parent)

    def add(self, event: Stored) -> int:
        """Keep an event; returns how many blocks of the oldest were given up for it."""
        count = len(event.block_hashes)
        if count > MAX_WAITING_BLOCKS:
            return count
        given_up = 0
        while self._is_full(count):
            parent, events = next(iter(self._by_parent.items()))
            given_up += self._forget(events.pop(0))
            if not events:
                del self._by_parent[parent]
        # Token ids as objects need nine times the memory, and most parents never come.
        kept = msgspec.structs.replace(event, token_ids=array("I", event.token_ids))
        self._by_parent.setdefault(event.parent_block_hash, []).append(kept)
        self._removed.update(dict.fromkeys(event.block_hashes, False))
        self.blocks += count
        self._events += 1
        return given_up

    def _is_full(self, count: int) -> bool:
        """No room for so many blocks more."""
        if not self._by_parent:
            return False
        return self.blocks + count > MAX_WAITING_BLOCKS or self._events >= MAX_WAITING_EVENTS

    def _forget(self, event: Stored) -> int:
        for name in event.block_hashes:
            self._removed.pop(name, None)
        self.blocks -= len(event.block_hashes)
        self._events -= 1
        return len(event.block_hashes)

    def remove(self, name: Any) -> bool:
        """A block left; if it waits (the answer) it will not be held when its parent comes."""
        if name not in self._removed:
            return False
        self._removed[name] = True
        return True

    def take(self, parents: Iterable[Any]) -> list[tuple[Stored, list[Any]]]:
        """Events that waited for these parents, each with its blocks that were removed."""
        taken = [event for parent in parents for event in self._by_parent.pop(parent, ())]
        is_removed = self._removed.get
        # One block may wait in several events.
        found = [(event, list(filter(is_removed, event.block_hashes))) for event in taken]
        for event in taken:
            self._forget(event)
        return found

    def clear(self) -> None:
        """Nothing waits any more."""
        self._by_parent.clear()
        self._removed.clear()
        self.blocks = self._events = 0
