"""Exact prefix index: what engines' cache events say they hold, under the keys of prompts.

Tokens of an event are chained with the same function as a request's (`core.prompt`), so that an
engine's own hash is needed for one thing only: to find the key again when a block leaves or gets a
child. Publishers share one map from hash to key, because engines of one kind give equal blocks
equal hashes; a publisher that disagrees, or whose hashes are no digests, gets a map of its own.

Blocks of another size than the router's go through `core.rechunking`. Where a parent is unknown,
the event waits until the parent is learned, within a bound. A block in several memories counts
once, in the fastest; one of which a memory has copies leaves with the last of them.
"""

import sys
from array import array
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any

import xxhash

from routing.core.block_masks import DEVICE, KEY_MASK, BlockMasks
from routing.core.compact_map import SPILL, CompactMap
from routing.core.event_roots import Roots, further_extras, mixed, mixed_chain
from routing.core.kv_events import Event, Removed, Stored, is_device, is_digest
from routing.core.publishers import Publisher
from routing.core.rechunking import Page, Pages, start
from routing.core.single_blocks import SingleBlocks

SWEPT_AT_ONCE = 4096
"""Blocks that are looked at in one step of a sweep: about half a millisecond."""
_EVICTED_AT_ONCE = 2048
_PAGES_SHARE = 8
"""One publisher keeps at most this part of all blocks as pages of another size."""
_CHECKED_ABOVE = 4
"""Smaller events are compared with recent names of other publishers only: it costs less."""

_digest = xxhash.xxh3_64_intdigest
Extras = list[list[Any]] | None


class ExactIndex:
    """Fills the planes of engines' memories; `apply` never raises for what an engine says."""

    def __init__(self, blocks: BlockMasks, *, block_tokens: int, max_blocks: int) -> None:
        if sys.byteorder != "little":
            raise RuntimeError("Keys of token ids are little-endian; this machine is not.")
        self.block_tokens = block_tokens
        self._width = 4 * block_tokens
        self._cut = Struct(f"{self._width}s").iter_unpack
        self._single = SingleBlocks(blocks, block_tokens=block_tokens)
        self._blocks = blocks
        self._max_blocks = max_blocks
        self._publishers: dict[int, Publisher] = {}
        self._roots = Roots()
        self._names = CompactMap(is_kept=self._blocks.has)
        self._sweeps: dict[int, list[int]] = {}
        """Keys that may still have bits of a cleared instance."""

    def open(self, slot: int) -> None:
        """An instance will publish; what it holds is unknown, so nothing is credited yet."""
        if slot not in self._publishers:
            self._blocks.use(DEVICE)
            self._publishers[slot] = Publisher(slot, self._names)

    def close(self, slot: int) -> None:
        """The instance is gone, or its events are not believed any more."""
        if slot in self._publishers:
            self.clear(slot)
            self._finish_sweep(slot)
            del self._publishers[slot]

    def publisher(self, slot: int) -> Publisher | None:
        """What is known of an instance's events."""
        return self._publishers.get(slot)

    @property
    def names_bytes(self) -> int:
        """Memory of the shared map of hashes."""
        return self._names.bytes

    # Emptying.

    def clear(self, slot: int) -> None:
        """The instance holds nothing: its engine started anew, or its cache was reset.

        At once for `match`; the dictionary itself is cleaned by `sweep` when it is large.
        """
        publisher = self._publishers.get(slot)
        if publisher is None:
            return
        publisher.waiting.clear()
        publisher.copies.clear()
        for pages in publisher.pages.values():
            pages.clear()
        if publisher.names is not self._names:
            publisher.names = CompactMap(is_kept=self._blocks.has)
        if publisher.blocks:
            publisher.blocks = 0
            self._names.doubt()
            self._blocks.mark_dead(publisher.bits)
            self._sweeps[slot] = list(self._blocks.masks)
            if len(self._blocks) <= SWEPT_AT_ONCE:
                self.sweep(slot)

    def is_sweeping(self, slot: int) -> bool:
        """A large dictionary is being cleaned of an instance; give it `sweep` before `apply`."""
        return slot in self._sweeps

    def sweep(self, slot: int) -> None:
        """One step of cleaning up after `clear`."""
        keys, publisher = self._sweeps.get(slot), self._publishers.get(slot)
        if keys is None or publisher is None:
            return
        bits, unset = publisher.bits, self._blocks.unset
        for key in keys[-SWEPT_AT_ONCE:]:
            unset(key, bits)
        del keys[-SWEPT_AT_ONCE:]
        if not keys:
            del self._sweeps[slot]
            self._blocks.revive(bits)

    def _finish_sweep(self, slot: int) -> None:
        while slot in self._sweeps:
            self.sweep(slot)

    def apply(self, slot: int, events: Iterable[Event]) -> None:
        """Take events in order. Ignored for an instance that was not opened."""
        publisher = self._publishers.get(slot)
        if publisher is None:
            return
        rest = iter(events)
        for event in rest:
            if self._sweeps:
                self._finish_sweep(slot)
            other: Event | None = event
            if isinstance(event, Stored) and len(event.block_hashes) == 1:
                other = self._single.append(publisher, event, rest)
            if isinstance(other, Stored):
                self._take_stored(publisher, other)
            elif other is not None:
                self._take_other(publisher, other)
        self._tidy(publisher)

    def _take_other(self, publisher: Publisher, event: Event) -> None:
        if isinstance(event, Removed):
            self._take_removed(publisher, event)
        else:
            publisher.counts.cleared += 1
            self.clear(publisher.slot)

    def _tidy(self, publisher: Publisher) -> None:
        if len(publisher.names.recent) >= SPILL:
            publisher.names.settle()
        if len(self._blocks) > self._max_blocks:
            self._evict()
        self._blocks.bound_interned()

    # Blocks that come.

    def _take_stored(self, publisher: Publisher, event: Stored) -> None:
        """Store an event, then whatever waited for its blocks, and so on."""
        if not self._store(publisher, event) or not publisher.waiting:
            return
        found = publisher.waiting.take(event.block_hashes)
        while found:
            event, removed = found.pop()
            # What came once more after it had left stays; on the device it is a copy now.
            gone = removed
            if not is_device(event.medium):
                gone = [name for name in removed if not self._has(publisher, name, event.medium)]
            if self._store(publisher, event):
                found += publisher.waiting.take(event.block_hashes)
                if gone:
                    self._take_removed(publisher, Removed(block_hashes=gone, medium=event.medium))

    def _has(self, publisher: Publisher, name: Any, medium: str | None) -> bool:
        pages = publisher.pages.get(medium)
        if pages is not None and pages.get(name) is not None:
            return True
        key = publisher.names.get(name)
        return key is not None and self._blocks.holds(key, publisher.bit(medium))

    def _store(self, publisher: Publisher, event: Stored) -> bool:
        """False when nothing was stored: misshaped, not credited, or the parent is unknown."""
        count, size, counts = len(event.block_hashes), event.block_size, publisher.counts
        if event.kv_cache_spec_kind is not None and not publisher.credits(event):
            counts.uncredited += count
            return False
        try:
            text = array("I", event.token_ids).tobytes()
        except (OverflowError, TypeError):
            text = b""
        if size < 1 or not text or len(text) != 4 * size * count:
            counts.misshaped += 1
            return False
        publisher.engine_block_tokens = size
        store = self._store_equal if size == self.block_tokens else self._store_pages
        is_stored = store(publisher, event, text)
        if is_stored:
            counts.stored_blocks += count
        else:
            counts.unknown_parents += count
            counts.given_up += publisher.waiting.add(event)
        return is_stored

    def _store_equal(self, publisher: Publisher, event: Stored, text: bytes) -> bool:
        """Blocks of the router's own size; false when their parent is unknown."""
        extras: Extras = None
        if event.extra_keys is not None and any(event.extra_keys):
            extras = further_extras(event)
        parent: Any = event.parent_block_hash
        if parent:
            names = publisher.names
            key = names.recent.get(parent) or names.get(parent)
            if key is None or not self._blocks.holds(key, publisher.bits):
                return False
        else:
            # Some publishers say 0 for "no parent".
            key, extras = self._roots.beginning(event, extras)
        width = self._width
        if extras is not None:
            keys = mixed_chain(text, key, width=width, extras=extras)
        else:
            keys = [key := _digest(block, key) for (block,) in self._cut(text)]
        self._name(publisher, event.block_hashes, keys)
        if held := self._hold(publisher, event.medium, keys):
            publisher.copies.note(event, held)
        return True

    def _hold(self, publisher: Publisher, medium: str | None, keys: list[int]) -> list[int]:
        """A memory has these blocks; returns positions of those that it had before."""
        bit, mine = publisher.device_bit, publisher.bits
        if not is_device(medium):
            bit = publisher.bit(medium)
            self._blocks.use(publisher.plane(medium))
        masks, intern = self._blocks.masks, self._blocks.interned.setdefault
        alone = before = after = intern(bit, bit)
        count, added, fresh, held = len(masks), 0, 0, []
        known = masks.get
        for position, key in enumerate(keys):
            mask = known(key & KEY_MASK)
            if mask is None:
                masks[key & KEY_MASK] = alone
                continue
            if mask & bit:
                held.append(position)
                continue
            if mask is not before:
                before = mask
                after = mask | bit
                after = intern(after, after)
                # A block that another memory of the instance holds is not one more.
                fresh = 0 if mask & mine else 1
            masks[key & KEY_MASK] = after
            added += fresh
        publisher.blocks += added + len(masks) - count
        return held

    def _name(self, publisher: Publisher, hashes: list[Any], keys: list[int]) -> None:
        """Remember which keys an engine's hashes mean."""
        names, recent = publisher.names, publisher.names.recent
        last = hashes[-1]
        known = recent.get(last)
        if known is None and len(keys) > _CHECKED_ABOVE:
            known = names.get(last)
        if known != keys[-1] and (known is not None or not publisher.counts.stored_blocks):
            names = self._check_agreement(publisher, known, hashes[0])
            recent = names.recent
        recent.update(zip(hashes, keys, strict=True))
        if len(recent) >= SPILL:
            names.settle()

    def _check_agreement(self, publisher: Publisher, known: int | None, name: Any) -> CompactMap:
        """Leave the shared map when somebody else means other blocks by the same hashes."""
        if publisher.names is self._names and (known is not None or not is_digest(name)):
            # Earlier blocks could no longer be found by their hashes.
            self.clear(publisher.slot)
            self._finish_sweep(publisher.slot)
            publisher.names = CompactMap(is_kept=self._blocks.has)
        if known is not None:
            publisher.counts.disagreements += 1
        return publisher.names

    # Blocks that leave.

    def _take_removed(self, publisher: Publisher, event: Removed) -> None:
        if event.group_idx is not None and event.group_idx in publisher.other_groups:
            return
        bit, mine = publisher.bit(event.medium), publisher.bits
        believed = self._blocks.believed
        names, masks, intern = publisher.names, self._blocks.masks, self._blocks.intern
        removed = gone = 0
        for name in self._leaving(publisher, event):
            key = names.get(name)
            short = -1 if key is None else key & KEY_MASK
            mask = masks.get(short, 0)
            if not mask & bit:
                if not publisher.waiting.remove(name):
                    publisher.counts.unknown_removals += 1
                continue
            rest = mask ^ bit
            removed += 1
            gone += not rest & mine
            if rest:
                masks[short] = intern(rest)
            else:
                del masks[short]
            if not rest & ~believed:
                names.delete(name)
        publisher.blocks -= gone
        publisher.counts.removed_blocks += removed

    def _leaving(self, publisher: Publisher, event: Removed) -> list[Any]:
        """Hashes of which the last copy left, less those of pages, which are removed here."""
        names: list[Any] = event.block_hashes
        if publisher.copies and is_device(event.medium):
            names = publisher.copies.without(names)
        if publisher.pages:
            pages = self._pages(publisher, event.medium)
            names = [name for name in names if not pages.remove(name)]
        publisher.counts.removed_blocks += len(event.block_hashes) - len(names)
        return names

    # Blocks that are told by their keys.

    def hold_keys(self, slot: int, keys: list[int]) -> None:
        """Blocks came into the device's memory, told by the keys of prompts, as a simulator can."""
        publisher = self._publishers.get(slot)
        if publisher is not None:
            publisher.counts.stored_blocks += len(keys)
            self._hold(publisher, None, keys)
            self._tidy(publisher)

    def drop_keys(self, slot: int, keys: list[int]) -> None:
        """They left it."""
        publisher = self._publishers.get(slot)
        if publisher is None:
            return
        for key in keys:
            publisher.blocks -= bool(self._blocks.unset(key & KEY_MASK, publisher.device_bit))
        publisher.counts.removed_blocks += len(keys)

    # Blocks of another size.

    def _pages(self, publisher: Publisher, medium: str | None) -> Pages:
        pages = publisher.pages.get(medium)
        if pages is None:
            pages = publisher.pages[medium] = Pages(
                width=self._width,
                limit=max(1, self._max_blocks // _PAGES_SHARE),
                hold=lambda keys: self._hold(publisher, medium, keys),
                drop=self._dropper(publisher, medium),
            )
        return pages

    def _dropper(self, publisher: Publisher, medium: str | None) -> Callable[[list[int]], None]:
        bit = publisher.bit(medium)

        def drop(keys: list[int]) -> None:
            for key in keys:
                had = self._blocks.unset(key & KEY_MASK, bit)
                if had and not self._blocks.holds(key, publisher.bits):
                    publisher.blocks -= 1

        return drop

    def _store_pages(self, publisher: Publisher, event: Stored, text: bytes) -> bool:
        pages, extras = self._pages(publisher, event.medium), further_extras(event)
        after: Page | None
        if event.parent_block_hash:
            after = pages.get(event.parent_block_hash)  # type: ignore[arg-type]
        else:
            root, extras = self._roots.beginning(event, extras)
            after = start(root)
        if after is None:
            return False
        names: list[Any] = event.block_hashes
        if held := [at for at, name in enumerate(names) if pages.get(name)]:
            publisher.copies.note(event, held)
        width = 4 * event.block_size
        for position, name in enumerate(names):
            if extras and extras[position]:
                after = Page(mixed(after.end, extras[position]), after.tail, after.under_tail)
            tokens = text[position * width : (position + 1) * width]
            after = pages.store(name, tokens, after)
        return True

    # The bound.

    def _evict(self) -> None:
        """Forget the blocks that entered first, whoever holds them."""
        self._names.doubt()
        excess = len(self._blocks) - self._max_blocks + _EVICTED_AT_ONCE
        for mask in self._blocks.forget_oldest(excess):
            for publisher in self._publishers.values():
                if mask & publisher.bits:
                    publisher.blocks -= 1
