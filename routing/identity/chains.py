"""Block keys of a prompt in pieces, with a bounded memory of pieces and of whole beginnings.

Two things are remembered, each LRU by bytes: the token ids of a text, and for each beginning of a
prompt that was seen the keys that its last piece completed. A prompt whose system message is known
costs a hash of its text and a look-up per piece. Digests are seeded with a secret, so that nobody
can make two texts meet.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np
import xxhash

from routing.core.prompt import TOKEN_BYTES, BlockKeys, chain
from routing.identity.pieces import Piece

Tokenise = Callable[[str], bytes | None]
"""Ids of a text, or `None` when that has to wait."""

_ENTRY_BYTES = 400
"""What a remembered thing costs beside its content."""
_NO_KEYS: BlockKeys = np.zeros(0, dtype=np.uint64)
_Value = TypeVar("_Value")


class Identified(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a prompt."""

    block_keys: BlockKeys
    """Of the beginning that is known without a gap."""
    tokens: int
    """Counted in all pieces that are known."""
    missing: tuple[str, ...]
    """Texts whose ids are not known, in order; () is a prompt that is known whole."""

    @property
    def missing_bytes(self) -> int:
        """Size of what is not known."""
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in self.missing)


class _Link(msgspec.Struct, frozen=True, gc=False):
    """The end of a beginning: what its last piece added."""

    keys: BlockKeys
    parent: int
    """Key of its last whole block."""
    tail: bytes
    """Ids behind that block."""
    tokens: int
    """Of the last piece."""


class Bounded(Generic[_Value]):
    """A dictionary that forgets what was used longest ago when its bytes are over a bound."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: OrderedDict[int, tuple[_Value, int]] = OrderedDict()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: int) -> _Value | None:
        """A value, which counts as used."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: int, value: _Value, size: int) -> None:
        """Remember a value of `size` bytes."""
        before = self._held.pop(key, None)
        if before:
            self.held_bytes -= before[1]
        size += _ENTRY_BYTES
        self._held[key] = (value, size)
        self.held_bytes += size
        while self.held_bytes > self._limit and self._held:
            _, (_, freed) = self._held.popitem(last=False)
            self.held_bytes -= freed

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()
        self.held_bytes = 0


class Chains:
    """The memory of one tokenizer."""

    def __init__(self, *, block_tokens: int, cache_bytes: int, secret: int) -> None:
        self._width = block_tokens * TOKEN_BYTES
        self._secret = secret & (2**64 - 1)
        self._ids: Bounded[bytes] = Bounded(cache_bytes // 2)
        self._links: Bounded[_Link] = Bounded(cache_bytes // 2)

    @property
    def held_bytes(self) -> int:
        """Memory in use."""
        return self._ids.held_bytes + self._links.held_bytes

    def learn(self, text: str, ids: bytes) -> None:
        """Remember the ids of a text."""
        self._ids.put(self._digest(text), ids, len(ids))

    def knows(self, text: str) -> bool:
        """Whether the ids of a text are remembered."""
        return self._ids.get(self._digest(text)) is not None

    def forget(self) -> None:
        """After a change of the tokenizer."""
        self._ids.clear()
        self._links.clear()

    def _digest(self, text: str) -> int:
        raw = text.encode("utf-8", "surrogatepass")
        return xxhash.xxh3_128_intdigest(raw, self._secret)

    def identify(self, pieces: Sequence[Piece], root: int, tokenise: Tokenise) -> Identified:
        """Block keys of a prompt; `tokenise` is asked for texts that are not remembered."""
        state = self._secret ^ root
        digest, links = xxhash.xxh3_64_intdigest, self._links
        link = _Link(_NO_KEYS, root, b"", 0)
        keys: list[BlockKeys] = []
        tokens = 0
        for position, (lead, text) in enumerate((piece.lead, piece.text) for piece in pieces):
            state = digest(
                b"%d:%b%b" % (len(lead), lead, text.encode("utf-8", "surrogatepass")), state
            )
            found = links.get(state)
            if found is None:
                ids = self._ids_of(text, tokenise)
                if ids is None:
                    return self._partly(pieces[position:], keys, tokens, tokenise)
                found = self._following(link, lead + ids)
                links.put(state, found, found.keys.nbytes + len(found.tail))
            link = found
            keys.append(link.keys)
            tokens += link.tokens
        return Identified(block_keys=_joined(keys), tokens=tokens, missing=())

    def _following(self, link: _Link, ids: bytes) -> _Link:
        raw = link.tail + ids
        added = chain(raw, root=link.parent, width=self._width)
        return _Link(
            np.array(added, dtype=np.uint64),
            added[-1] if added else link.parent,
            raw[len(added) * self._width :],
            len(ids) // TOKEN_BYTES,
        )

    def _ids_of(self, text: str, tokenise: Tokenise) -> bytes | None:
        if not text:
            return b""
        key = self._digest(text)
        ids = self._ids.get(key)
        if ids is None:
            ids = tokenise(text)
            if ids is not None:
                self._ids.put(key, ids, len(ids))
        return ids

    def _partly(
        self, rest: Sequence[Piece], keys: list[BlockKeys], tokens: int, tokenise: Tokenise
    ) -> Identified:
        """Keys up to a gap; behind it only the count goes on."""
        missing = []
        for piece in rest:
            ids = self._ids_of(piece.text, tokenise)
            tokens += len(piece.lead) // TOKEN_BYTES
            if ids is None:
                missing.append(piece.text)
            else:
                tokens += len(ids) // TOKEN_BYTES
        return Identified(block_keys=_joined(keys), tokens=tokens, missing=tuple(missing))


def _joined(keys: list[BlockKeys]) -> BlockKeys:
    return np.concatenate(keys) if keys else _NO_KEYS
