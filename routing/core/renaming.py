"""A model's name changed on the way to an engine, and back on the way to the client.

Only the bytes of the name are exchanged. In an answer a name is found by its text: inside of a JSON
string a quote is escaped, so `"model":"NAME"` can only be a member, wherever it is nested.
"""

import json
import re
from functools import lru_cache

import msgspec

_MODEL = re.compile(rb'"model"\s*:\s*("(?:[^"\\]|\\.)*")')
_KEY = b'"model"'
_BACKSLASH = ord("\\")
_MOST_SPACE = 64
"""White space around the colon for which the end of a piece of a stream is kept back."""


class _Named(msgspec.Struct):
    model: str


_NAMED = msgspec.json.Decoder(_Named)


def with_model(body: bytes, model: str) -> bytes:
    """A request's body for another model than its own; every other byte stays.

    Where the first `model` in it is not the one that counts (it is nested, or there are several),
    the values keep their bytes and the space between them goes. The body must be a JSON object with
    a text as its `model`, another one than `model` (it was parsed before).
    """
    name = msgspec.json.encode(model)
    found = _MODEL.search(body)
    if found is not None:
        changed = b"%b%b%b" % (body[: found.start(1)], name, body[found.end(1) :])
        # Readers take the last of several; another one than the right would still have its name.
        if _NAMED.decode(changed).model == model:
            return changed
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(members | {"model": msgspec.Raw(name)})


class Renaming:
    """The name that a client asked for, put back where an engine tells its own."""

    def __init__(self, served: str, asked: str) -> None:
        names = sorted({re.escape(written) for written in _written(served)})
        self._pattern = re.compile(rb'("model"\s*:\s*)(?:%b)' % b"|".join(names))
        self._asked = msgspec.json.encode(asked)
        self._begin = re.compile(rb'"model"\s*:?\s*')
        self._served = _written(served)
        self.longest = len(_KEY) + 1 + _MOST_SPACE + max(map(len, self._served))
        """Bytes that one name with its key can have, as far as it is waited for."""

    def answer(self, data: bytes) -> bytes:
        """A whole answer, or whole events of a stream, under the asked name."""
        if _KEY not in data:
            return data
        return self._pattern.sub(self._renamed, data)

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        """Behind a backslash the quote ends no key: it is part of another one."""
        start = found.start()
        if start and found.string[start - 1] == _BACKSLASH:
            return found[0]
        return found[1] + self._asked

    def begins_at(self, data: bytes) -> int:
        """Where a name may begin that goes on behind the end of `data`; its length if nowhere."""
        start = max(0, len(data) - self.longest)
        for found in self._pattern.finditer(data):
            start = max(start, found.end())
        place = data.find(b'"', start)
        while place >= 0:
            is_key = place == 0 or data[place - 1] != _BACKSLASH
            if is_key and self._may_go_on(data[place:]):
                return place
            place = data.find(b'"', place + 1)
        # A backslash tells of the next byte, so both stay together.
        return len(data) - data.endswith(b"\\")

    def _may_go_on(self, tail: bytes) -> bool:
        if len(tail) <= len(_KEY):
            return _KEY.startswith(tail)
        found = self._begin.match(tail)
        if found is None:
            return False
        rest = tail[found.end() :]
        return any(len(rest) < len(name) and name.startswith(rest) for name in self._served)


class RenamedPieces:
    """The same for an answer in pieces that are cut anywhere; it keeps back what may be a name."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming
        self._kept = b""

    def piece(self, data: bytes, *, is_last: bool = False) -> bytes:
        """What may be passed on now; b"" is a possible answer."""
        data = self._kept + data
        cut = len(data) if is_last else self._renaming.begins_at(data)
        self._kept = data[cut:]
        return self._renaming.answer(data[:cut])


@lru_cache(maxsize=1024)
def renaming(served: str, asked: str) -> Renaming:
    """The renaming of a pair of names, made once."""
    return Renaming(served, asked)


def _written(name: str) -> list[bytes]:
    """How an engine may write a name in JSON: as it is, or in ASCII alone."""
    return [msgspec.json.encode(name), json.dumps(name).encode()]
