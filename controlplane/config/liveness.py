"""A file whose age says that a worker or beat is alive, for probes of processes without a port.

Celery is known to stop consuming after some broker failures while its process goes on, so that a
process exists says little. The file is touched from inside the loop that would stand still.
`python -m controlplane.config.liveness FILE --seconds 60` ends with 0 if it was touched since.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TOUCH_SECONDS = 5.0


def touch(file: Path) -> None:
    """Note that the process is alive; a full or vanished folder must not end it."""
    try:
        file.touch(mode=0o644)
    except OSError as error:
        sys.stderr.write(f"{file} cannot be touched: {error.strerror}.\n")


def age_seconds(file: Path) -> float | None:
    """Seconds since the file was touched; None if it is not there."""
    try:
        return datetime.now(UTC).timestamp() - file.stat().st_mtime
    except OSError:
        return None


def worker_step(file: Path) -> type[Any]:
    """A step of a Celery worker that touches the file from its event loop."""
    from celery import bootsteps

    class TouchFile(bootsteps.StartStopStep):
        requires = ("celery.worker.components:Timer",)

        def start(self, worker: Any) -> None:
            touch(file)
            self.timer = worker.timer.call_repeatedly(TOUCH_SECONDS, touch, (file,), priority=10)

        def stop(self, worker: Any) -> None:
            self.timer.cancel()

    return TouchFile


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if the file is young enough, else 1 with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m controlplane.config.liveness")
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args(arguments)
    age = age_seconds(options.file)
    if age is not None and age <= options.seconds:
        return 0
    state = "is not there" if age is None else f"was last touched {age:.0f} s ago"
    sys.stderr.write(f"{options.file} {state}; allowed are {options.seconds:g} s.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
