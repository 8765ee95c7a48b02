"""Answers as a table, JSON or YAML. A table where a person reads, JSON where a program does."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

FORMATS = ("table", "json", "yaml")


def chosen(asked: str | None, *, is_terminal: bool) -> str:
    """The format to write."""
    return asked or ("table" if is_terminal else "json")


def dumped(value: Any, form: str) -> str:
    """The whole answer as JSON or YAML."""
    if form == "yaml":
        # Loading it costs more than the rest of a small command.
        import yaml

        return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False)).rstrip()
    return json.dumps(value, ensure_ascii=False, indent=2)


def report(value: Any) -> bytes:
    """A file of a report, a struct: JSON on many lines, the last one ended."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns side by side; numbers to the right, "-" where nothing is known."""
    texts = [[text(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *texts, strict=True)]
    numbers = [
        bool(rows) and all(cell is None or _is_number(cell) for cell in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(head)
    lines = [_line(head, widths, numbers)]
    lines += [_line(row, widths, numbers) for row in texts]
    return "\n".join(lines)


def text(cell: object) -> str:
    """One cell."""
    if cell is None or cell == "":
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.3f}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def width(line: str) -> int:
    """Columns on a terminal; a Korean syllable takes two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in line)


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    padded = []
    for cell, wide, is_number in zip(cells, widths, numbers, strict=True):
        space = " " * (wide - width(cell))
        padded.append(space + cell if is_number else cell + space)
    return "  ".join(padded).rstrip()
