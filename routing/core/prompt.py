"""From a prompt to block keys: chained hashes of its bytes or of its token ids.

Block *i* is hashed with xxh3 (64 bits), seeded with the key of block *i - 1*; the first is seeded
with the root. Equal keys therefore mean equal prompts up to and including that block.

Mode `bytes` cuts the canonical prompt into fixed chunks and needs no tokenizer. The exact modes
and KV events cut token ids into blocks; both use `token_block_keys` and `exact_root`, so that a
prompt and what an engine's cache holds meet in the same keys.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain as joined
from typing import cast

import numpy as np
import xxhash
from numpy.typing import NDArray

BlockKeys = NDArray[np.uint64]

TOKEN_BYTES = 4
"""Bytes of a token id under the hash, little-endian."""

_FEW_PIECES, _MANY_PIECES = 12, 4096
"""Below the one, pieces are cut singly; more than the other are never held at once."""


@lru_cache(maxsize=1024)
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


def canonical(parts: Sequence[str | bytes]) -> bytes:
    """Join the pieces of a prompt, in the order in which a chat template renders them."""
    try:
        # Mostly all of them are text, and one encoding is cheaper than many.
        return "\x1f".join(cast(Sequence[str], parts)).encode("utf-8", "surrogatepass")
    except TypeError:
        return b"\x1f".join(
            part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            for part in parts
        )


def block_keys(prompt: bytes, *, root: int, chunk_bytes: int) -> BlockKeys:
    """Chained keys, shape `(len(prompt) // chunk_bytes,)`; an incomplete last chunk has no key.

    Engines reuse whole blocks only, so the incomplete chunk could not be a hit anyway.
    """
    # Through an array of machine words: numpy looks at each of a list's numbers for longer.
    return np.frombuffer(array("Q", chain(prompt, root=root, width=chunk_bytes)), dtype=np.uint64)


def chain(raw: bytes, *, root: int, width: int) -> list[int]:
    """Keys of the whole pieces of `width` bytes, each seeded with the one before it."""
    digest = xxhash.xxh3_64_intdigest
    keys: list[int] = []
    parent = root
    if len(raw) < _FEW_PIECES * width:
        for start in range(0, len(raw) - width + 1, width):
            parent = digest(raw[start : start + width], parent)
            keys.append(parent)
        return keys
    for piece in _cut(raw, width):
        parent = digest(piece, parent)
        keys.append(parent)
    return keys


def _cut(raw: bytes, width: int) -> Iterable[bytes]:
    """The whole pieces of a text; many at once are cut in a third of the time of one by one."""
    count = len(raw) // width
    if count <= _MANY_PIECES:
        pieces: list[bytes] = np.frombuffer(raw, dtype=f"V{width}", count=count).tolist()
        return pieces
    slab = _MANY_PIECES * width
    slabs = (raw[start : start + slab] for start in range(0, count * width, slab))
    return joined.from_iterable(_cut(part, width) for part in slabs)


def exact_root(adapter: str | None, salt: str | None) -> int:
    """Key before the first block of tokens, from what engines' cache events tell: adapter and salt.

    Neither model nor tenant is in it, because events name neither; a pool has one base model.
    """
    return root_key(adapter, salt)


def token_block_keys(
    tokens: bytes | NDArray[np.uint32], *, root: int, block_tokens: int
) -> BlockKeys:
    """Chained keys of whole blocks of token ids (bytes: four little-endian ones per id)."""
    raw = tokens if isinstance(tokens, bytes) else tokens.astype("<u4", copy=False).tobytes()
    return block_keys(raw, root=root, chunk_bytes=TOKEN_BYTES * block_tokens)
