"""What readers of recorded traffic have in common: bounds, refusals, lines of JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from routing.simulator.notes import Note
from routing.simulator.requests import Arrival

MOST_BYTES = 256 * 1024 * 1024
MOST_LINE_BYTES = 1024 * 1024
MOST_REQUESTS = 1_000_000
MOST_TOKENS = 10_000_000
"""Of a prompt or an answer."""

T = TypeVar("T")


class TraceError(Exception):
    """A trace was refused. `line` counts from 1; `None` is the whole."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"Line {line}: {message}")
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A trace that was read."""

    requests: tuple[Arrival, ...]
    """In order of their times, in seconds after the first."""
    block_tokens: int
    notes: tuple[Note, ...] = ()
    """What is not as it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of a trace is wanted."""

    limit: int | None = None
    """The first so many requests."""
    longest_tokens: int | None = None
    """Longer prompts are cut to it; `None` leaves them as they are."""

    def cut(self, tokens: int) -> int:
        """A prompt's length within the bounds."""
        return tokens if self.longest_tokens is None else min(tokens, self.longest_tokens)

    def is_full(self, count: int) -> bool:
        """Nothing more is wanted after so many requests. Raises TraceError when it is too many."""
        if count >= MOST_REQUESTS and self.limit is None:
            raise TraceError(f"There are more than {MOST_REQUESTS} requests; state a limit.")
        return count >= min(self.limit or MOST_REQUESTS, MOST_REQUESTS)

    def notes(self, cut: int) -> tuple[Note, ...]:
        """What to tell after so many prompts were cut."""
        names = {"count": cut, "tokens": self.longest_tokens}
        return (Note("cut-prompts", names),) if cut else ()


def lines_of(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers. Raises TraceError beyond the bounds."""
    if len(raw) > MOST_BYTES:
        raise TraceError(f"The trace has {len(raw)} bytes; at most {MOST_BYTES} are read.")
    start, number = 0, 0
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        number += 1
        if end - start > MOST_LINE_BYTES:
            raise TraceError(
                f"It has {end - start} bytes; at most {MOST_LINE_BYTES} are read.", line=number
            )
        line = raw[start:end].strip()
        if line:
            yield number, line
        start = end + 1


def decoded(decoder: msgspec.json.Decoder[T], line: bytes, number: int) -> T:
    """A line of JSON. Raises TraceError saying what is wrong with it."""
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise TraceError(f"{error}.", line=number) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise TraceError(f"It is not JSON: {error}.", line=number) from error


def check_order(at: float, before: float, *, line: int, unit: str) -> None:
    """Times do not go back. Raises TraceError."""
    if at < before:
        raise TraceError(
            f"Its time {at:g} {unit} is before that of the line above, {before:g} {unit};"
            " a trace is in order of time.",
            line=line,
        )
