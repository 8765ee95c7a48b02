"""Blocks that come one an event: what engines publish while they decode, so most of all events.

Only ordinary ones are taken here, in one loop over a run of events; the exact index takes all
others in its general way.
"""

from collections.abc import Iterator
from struct import Struct, error

import xxhash

from routing.core.block_masks import KEY_MASK, BlockMasks
from routing.core.kv_events import CREDITED_KINDS, DEVICE, Event, Stored
from routing.core.publishers import Publisher

_PREFIX_KINDS = CREDITED_KINDS | {None}
_MEDIA = (DEVICE, None)

_digest = xxhash.xxh3_64_intdigest


class SingleBlocks:
    """Of the router's own size, in the device's memory, behind blocks that came lately."""

    def __init__(self, blocks: BlockMasks, *, block_tokens: int) -> None:
        self._blocks, self._block_tokens = blocks, block_tokens
        self._pack = Struct(f"{block_tokens}I").pack

    def append(
        self, publisher: Publisher, event: Stored, following: Iterator[Event]
    ) -> Event | None:
        """Store an event's block and those of further events, while they are ordinary.

        Returns the first event of which nothing was stored, `None` at the end.
        """
        medium, size, kind = event.medium, event.block_size, event.kv_cache_spec_kind
        if (
            publisher.waiting
            or medium not in _MEDIA
            or size != self._block_tokens
            or kind not in _PREFIX_KINDS
        ):
            return event
        names, masks, group = publisher.names.recent, self._blocks.masks, publisher.group
        bits, bit, pack = publisher.bits, publisher.device_bit, self._pack
        intern = self._blocks.interned.setdefault
        stored = added = 0
        current: Event | None = event
        try:
            while isinstance(current, Stored):
                (name,) = current.block_hashes
                parent = names[current.parent_block_hash]  # type: ignore[index]
                if (
                    current.medium != medium
                    or current.group_idx != group
                    or current.block_size != size
                    or current.kv_cache_spec_kind != kind
                    or ((extras := current.extra_keys) and extras[0])
                    or not masks[parent & KEY_MASK] & bits
                ):
                    break
                key = _digest(pack(*current.token_ids), parent)
                if names.setdefault(name, key) != key:  # type: ignore[arg-type]
                    break
                key &= KEY_MASK
                mask = masks.get(key, 0)
                if mask & bit:
                    publisher.copies.note(current, [0])
                else:
                    masks[key] = intern(mask | bit, mask | bit)
                    added += not mask & bits
                stored += 1
                current = next(following, None)
        except (KeyError, ValueError, error):
            # A parent that did not come lately, several blocks, or misshaped tokens.
            pass
        publisher.blocks += added
        publisher.counts.stored_blocks += stored
        return current
