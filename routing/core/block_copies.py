"""Equal blocks that an engine keeps side by side.

vLLM computes at least the last token of every prompt, and so a whole block again that it has in its
cache already; and it fills blocks while decoding. It keeps such copies and tells of each one that
comes or leaves (seen in 0.32.0), so a block is gone when its last copy is.
"""

from collections.abc import Iterable

from routing.core.kv_events import Hash, Stored, is_device

MAX_COPIED_BLOCKS = 65_536
"""Of one publisher. A block beyond them is believed gone with its first copy."""


class BlockCopies:
    """Of one publisher: how often its device's memory has a block beyond once."""

    def __init__(self) -> None:
        self._more: dict[Hash, int] = {}

    def __bool__(self) -> bool:
        return bool(self._more)

    def note(self, event: Stored, held: list[int]) -> None:
        """An event told of blocks of which those at `held` were there.

        Nothing new is in an event that is the beginning of a prompt and all there: vLLM repeats
        what a request found in the cache when that request asks for it (`kv_cache_report_mode`).
        Real copies of a whole beginning are rare, and believing in too few heals by itself.
        """
        if not is_device(event.medium):
            return
        if not event.parent_block_hash and len(held) == len(event.block_hashes):
            return
        for position in held:
            name = event.block_hashes[position]
            if name in self._more or len(self._more) < MAX_COPIED_BLOCKS:
                self._more[name] = self._more.get(name, 0) + 1

    def without(self, names: Iterable[Hash]) -> list[Hash]:
        """One copy of each block left; returns those of which it was the last."""
        return [name for name in names if not self._one_less(name)]

    def _one_less(self, name: Hash) -> bool:
        count = self._more.pop(name, 0)
        if count > 1:
            self._more[name] = count - 1
        return count > 0

    def clear(self) -> None:
        """Everything left."""
        self._more.clear()
