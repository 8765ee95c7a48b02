"""From a prompt to block keys, mode `bytes`: no tokenizer, one pass over the canonical prompt.

Chunk *i* is hashed with xxh3 (64 bits), seeded with the key of chunk *i - 1*; the first is seeded
with the root. Equal keys therefore mean equal prompts up to and including that chunk.
"""

from collections.abc import Iterable

import numpy as np
import xxhash
from numpy.typing import NDArray

BlockKeys = NDArray[np.uint64]

_SEPARATOR = b"\x1f"


def root_key(*parts: str | bytes | None) -> int:
    """Key before the first chunk. Model, adapter, cache salt and tenant salt belong in it.

    Absent parts count as empty; moving a character from one part to the next changes the key.
    """
    state = xxhash.xxh3_64()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part or b""
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
    return state.intdigest()


def canonical(parts: Iterable[str | bytes]) -> bytes:
    """Join the pieces of a prompt, in the order in which a chat template renders them."""
    return _SEPARATOR.join(
        part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts
    )


def block_keys(prompt: bytes, *, root: int, chunk_bytes: int) -> BlockKeys:
    """Chained keys, shape `(len(prompt) // chunk_bytes,)`; an incomplete last chunk has no key.

    Engines reuse whole blocks only, so the incomplete chunk could not be a hit anyway.
    """
    digest = xxhash.xxh3_64_intdigest
    keys = []
    parent = root
    for start in range(0, len(prompt) - chunk_bytes + 1, chunk_bytes):
        parent = digest(prompt[start : start + chunk_bytes], parent)
        keys.append(parent)
    return np.array(keys, dtype=np.uint64)
