"""From an event's adapter and extra keys to where a chain of block keys begins.

`extra_keys` has one entry a block: null, or a list of what else went into the engine's hash. The
adapter's name stands on every block and a cache salt on the first one; both belong to the root of
the chain. Anything else (media, embeddings) changes the key of its block, so that such a block
never looks like one of plain text.
"""

from typing import Any

import msgspec
import xxhash

from routing.core.kv_events import Stored
from routing.core.prompt import exact_root


class Roots:
    """Computes roots; the last few are remembered, because most events begin alike."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str | None], int] = {}

    def of(self, adapter: str | None, salt: str | None) -> int:
        """The key before the first block."""
        found = self._known.get((adapter, salt))
        if found is None:
            if len(self._known) > 1000:
                self._known.clear()
            found = self._known[adapter, salt] = exact_root(adapter, salt)
        return found

    def beginning(
        self, event: Stored, extras: list[list[Any]] | None
    ) -> tuple[int, list[list[Any]] | None]:
        """The root of an event's chain, and what is left of its extras: a salt is in the root."""
        salt = salt_of(extras[0]) if extras else None
        if extras and salt is not None:
            extras = [[], *extras[1:]] if any(extras[1:]) else None
        return self.of(adapter_of(event), salt), extras


def adapter_of(event: Stored) -> str | None:
    """Name of the adapter. One known by number only gets a name that no request asks for."""
    if event.lora_name:
        return event.lora_name
    return None if event.lora_id is None else f"\0{event.lora_id!r}"[:100]


def further_extras(event: Stored) -> list[list[Any]] | None:
    """Per block what is neither null nor the adapter's name; `None` when there is nothing."""
    extras = event.extra_keys
    if not extras or not any(extras):
        return None
    further = []
    for extra in extras[: len(event.block_hashes)]:
        parts = list(extra) if isinstance(extra, list | tuple) else [extra] if extra else []
        if parts and event.lora_name and parts[0] == event.lora_name:
            parts = parts[1:]
        further.append(parts)
    further += [[]] * (len(event.block_hashes) - len(further))
    return further if any(further) else None


def salt_of(first: list[Any]) -> str | None:
    """The cache salt, when the first block has one text beside the adapter and nothing else."""
    return first[0] if len(first) == 1 and isinstance(first[0], str) else None


def mixed(key: int, extra: list[Any]) -> int:
    """The key before a block, changed by what else identifies the block."""
    if not extra:
        return key
    return xxhash.xxh3_64_intdigest(msgspec.msgpack.encode(extra), seed=key)


def mixed_chain(text: bytes, key: int, *, width: int, extras: list[list[Any]]) -> list[int]:
    """Chained keys of blocks of which some have extras; `width` bytes of token ids a block."""
    keys = []
    for at, extra in zip(range(0, len(text), width), extras, strict=True):
        key = xxhash.xxh3_64_intdigest(text[at : at + width], seed=mixed(key, extra))
        keys.append(key)
    return keys
