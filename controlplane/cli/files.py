"""Files that a command is given: read whole, up to a bound; "-" is what is piped in. And files that
it leaves: whole or not at all.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from controlplane.cli.errors import USAGE, CliError

MOST_BYTES = 8 * 1024 * 1024
MOST_NAMED_BYTES = 256 * 1024 * 1024
"""Of a file that another file names: traces are large."""


def read(name: str) -> bytes:
    """The bytes of a file. Raises CliError when it cannot be read or is too large."""
    try:
        if name == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise CliError(f"{name} cannot be read: {error}.", code=USAGE) from error
    if len(content) > MOST_BYTES:
        raise CliError(f"{name} has more than {MOST_BYTES} bytes.", code=USAGE)
    return content


def reader(folder: Path) -> Callable[[str], bytes]:
    """Reads files that a file of this folder names; raises OSError, also for one too large.

    Of a folder, a router's spool for example, it gives the lines of all JSON files.
    """

    def read_named(name: str) -> bytes:
        path = folder / name
        content, left = [], MOST_NAMED_BYTES
        for part in sorted(path.glob("*.json*")) if path.is_dir() else [path]:
            content.append(_some(part, left + 1))
            left -= len(content[-1])
            if left < 0:
                raise OSError(f"it has more than {MOST_NAMED_BYTES} bytes")
        return b"\n".join(content)

    return read_named


def _some(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except ValueError as error:
        # A name that no file can have.
        raise OSError(str(error)) from error


def prepare(path: Path) -> None:
    """Make the folder of a file that is to be written; before long work. Raises CliError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error}.", code=USAGE) from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise CliError(f"{path} cannot be written.", code=USAGE)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one step, so that an interrupt leaves the old one or none."""
    prepare(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error}.", code=USAGE) from error
    finally:
        draft.unlink(missing_ok=True)
