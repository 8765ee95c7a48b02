"""What engines say about their KV caches, after an engine's decoder has read it.

Hashes are the engine's own, opaque numbers that mean one block at one publisher; keys of prompts
are computed from the token ids.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

Hash = int | bytes

DEVICE = "GPU"
"""Medium of the accelerator's own memory; engines say GPU on every kind of accelerator."""

CREDITED_KINDS = frozenset({"full_attention", "mla_attention", "sink_full_attention"})
"""Kinds of cache in which a block is of use exactly when all blocks before it are there, too.

Sliding windows and state-space layers are not among them: they break that order.
"""


_SMALLEST_DIGEST = 2**40


def is_digest(name: Hash) -> bool:
    """Small numbers are counters: equal ones of two publishers mean nothing."""
    return isinstance(name, int) and not 0 <= name < _SMALLEST_DIGEST


def is_device(medium: str | None) -> bool:
    """The accelerator's own memory, which is meant where no medium is named."""
    return medium is None or medium == DEVICE


class Stored(msgspec.Struct):
    """Blocks came into a cache: consecutive ones of one prompt, all tokens of each."""

    block_hashes: list[Hash]
    parent_block_hash: Hash | None
    token_ids: Sequence[Any]
    """Ids, or pairs of ids where the engine caches bigrams."""
    block_size: int
    lora_id: Any = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: list[Any] | None = None
    """Per block null or what else went into its hash: adapter, cache salt, media."""
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: Any = None


class Removed(msgspec.Struct):
    """Blocks left a cache."""

    block_hashes: list[Hash]
    medium: str | None = None
    group_idx: int | None = None


class Cleared(msgspec.Struct):
    """Everything left the cache."""


Event = Stored | Removed | Cleared


class Batch(msgspec.Struct):
    """One message of a publisher."""

    events: list[Event]
    sent_at: float
    """Unix time by the engine's clock."""
    rank: int | None = None
    """Data-parallel rank."""
    unknown_events: int = 0
    """Events of a shape that nobody here knows; the others of the batch were read."""


class EventDecodeError(Exception):
    """A payload is no batch of events. The message says why and holds no token ids."""
