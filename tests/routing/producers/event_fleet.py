"""An exact index with some publishers, and the events that they send."""

from typing import Any

import xxhash

from routing.core.block_masks import BlockMasks, short_keys
from routing.core.kv_events import Event, Removed, Stored
from routing.core.prompt import exact_root, token_block_keys
from routing.core.publishers import Publisher
from routing.producers.exact_index import ExactIndex

BLOCK = 4
Tokens = tuple[int, ...]


class Fleet:
    """An index with some publishers, asked by tokens."""

    def __init__(
        self, slots: int = 2, *, max_blocks: int = 100_000, block_tokens: int = BLOCK
    ) -> None:
        self.blocks = BlockMasks()
        self.blocks.reserve(slots)
        self.block_tokens = block_tokens
        self.index = ExactIndex(self.blocks, block_tokens=block_tokens, max_blocks=max_blocks)
        for slot in range(slots):
            self.index.open(slot)

    def keys(
        self, tokens: Tokens, adapter: str | None = None, salt: str | None = None
    ) -> list[int]:
        raw = b"".join(token.to_bytes(4, "little") for token in tokens)
        root = exact_root(adapter, salt)
        return short_keys(token_block_keys(raw, root=root, block_tokens=self.block_tokens))

    def hits(
        self, tokens: Tokens, adapter: str | None = None, salt: str | None = None
    ) -> list[int]:
        """Tokens of a prompt that each slot holds."""
        depths = self.blocks.match(self.keys(tokens, adapter, salt)).depths
        return [int(depth) * self.block_tokens for depth in depths]

    def publisher(self, slot: int) -> Publisher:
        """What is known of a slot that is open."""
        found = self.index.publisher(slot)
        assert found is not None
        return found

    def apply(self, slot: int, *events: Event) -> None:
        self.index.apply(slot, events)


def prompt(number: int, blocks: int) -> Tokens:
    """A prompt that shares its first two blocks with all others."""
    return tuple(
        7 if position < 2 * BLOCK else 1000 * number + position
        for position in range(blocks * BLOCK)
    )


def name_of(prefix: Tokens) -> int:
    """An honest engine's hash of the block that ends a prefix."""
    raw = b"".join(token.to_bytes(4, "little") for token in prefix)
    return xxhash.xxh3_64_intdigest(raw, seed=99) | 1 << 63


def stored(tokens: Tokens, first: int, last: int, *, size: int = BLOCK, **fields: Any) -> Stored:
    """Blocks `first` to `last` - 1 of a prompt."""
    return Stored(
        [name_of(tokens[: size * (at + 1)]) for at in range(first, last)],
        name_of(tokens[: size * first]) if first else None,
        list(tokens[size * first : size * last]),
        size,
        **fields,
    )


def removed(tokens: Tokens, *positions: int, size: int = BLOCK, **fields: Any) -> Removed:
    return Removed([name_of(tokens[: size * (at + 1)]) for at in positions], **fields)
