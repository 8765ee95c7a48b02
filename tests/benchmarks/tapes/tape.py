"""A tape: everything that a pool's router was told and asked, in order, with its times.

The file is JSON lines under xz. The first line is a `Header`; each further one is an array
`[microseconds since the line before, kind, ...]`, where the rest depends on the kind:

| kind | rest |
|---|---|
| `decide` | request (keys by number), keys if new, excluded ids, policy, destination or code |
| `begin` | number of the decision, number of the lease |
| `first`, `tokens`, `end` | number of the lease, and what came |
| `read`, `check`, `fail` | endpoint, and what was read, found or went wrong |
| `events` | name of the method of the event feed, endpoint, arguments by name |

Times are whole microseconds, and the recorded router lived by them, too: what is decided again is
told exactly what was told then.
"""

import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from routing.simulator.profiles import Profile

MICRO = 1_000_000
Line = tuple[int, str, list[Any]]
"""Microseconds on the router's clock, kind, rest."""


class TapeError(ValueError):
    """The file is no tape, or the run cannot be put on one."""


class Header(msgspec.Struct, kw_only=True):
    """What a tape starts from."""

    document: dict[str, Any]
    seed: int
    """Of the router."""
    began: int
    """Microseconds on the router's clock."""
    profiles: dict[str, Profile]
    """What the engines were, by speed class, on the clock of the run; a calibration changes the
    product's."""


@dataclass(frozen=True, slots=True)
class Tape:
    """One recorded stretch."""

    header: Header
    lines: tuple[Line, ...]

    def of(self, kind: str) -> Iterator[tuple[float, list[Any]]]:
        """Seconds and rest of the lines of one kind."""
        return ((at / MICRO, rest) for at, name, rest in self.lines if name == kind)


def micros(seconds: float) -> int:
    """The moment as it is on a tape."""
    return round(seconds * MICRO)


def write(path: Path, header: Header, lines: Iterable[Line]) -> None:
    """Write a whole file."""
    encode, before = msgspec.json.encode, header.began
    with lzma.open(path, "wb", preset=9) as file:
        file.write(encode(header) + b"\n")
        for at, kind, rest in lines:
            file.write(encode([at - before, kind, *rest]) + b"\n")
            before = at


def read(path: Path) -> Tape:
    """Read a file. Raises TapeError when it is no tape."""
    try:
        with lzma.open(path, "rb") as file:
            header = msgspec.json.decode(file.readline(), type=Header)
            return Tape(header, tuple(_lines(file, header.began)))
    except (lzma.LZMAError, msgspec.MsgspecError) as error:
        raise TapeError(f"{path.name} is no tape: {error}.") from error


def _lines(file: Iterable[bytes], began: int) -> Iterator[Line]:
    at = began
    for text in file:
        step, kind, *rest = msgspec.json.decode(text, type=list[Any])
        at += step
        yield at, kind, rest
