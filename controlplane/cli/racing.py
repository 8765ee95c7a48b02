"""Runs the heats of a race on several processes; what has been run before is read from a file.

A heat's file is named by a hash of its fields, in a folder named by a hash of every source file of
`routing`. So an interrupted race goes on where it was, and a changed line of code runs everything
again. Files appear whole or not at all; folders of old code go when there are many.
"""

import hashlib
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import msgspec

import routing
from controlplane.cli import files
from routing.simulator.race.heat import Heat, HeatReport, run_heat

Progress = Callable[[int], None]
"""Told how many heats are done."""


MOST_VERSIONS = 5
"""Of the code whose heats are kept."""
SOURCES = (".py", ".yaml", ".csv", ".jsonl")


class Shelf:
    """Finished heats of the present code in a folder of `top`."""

    def __init__(self, top: Path) -> None:
        self._folder = top / code_version()
        files.prepare(self._folder / "heat")
        self._folder.touch()
        versions = [path for path in top.iterdir() if path.is_dir()]
        versions.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in versions[MOST_VERSIONS:]:
            shutil.rmtree(old, ignore_errors=True)

    def get(self, heat: Heat) -> HeatReport | None:
        """A finished heat of this code."""
        try:
            return msgspec.json.decode(self._path(heat).read_bytes(), type=HeatReport)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def put(self, report: HeatReport) -> None:
        """Keep one."""
        files.write_whole(self._path(report.heat), msgspec.json.encode(report))

    def _path(self, heat: Heat) -> Path:
        content = msgspec.json.encode(heat, order="sorted")
        return self._folder / f"{hashlib.sha256(content).hexdigest()[:32]}.json"


def code_version() -> str:
    """A hash of all sources and data files of `routing`."""
    digest = hashlib.sha256()
    top = Path(next(iter(routing.__path__)))
    for path in sorted(path for path in top.rglob("*") if path.suffix in SOURCES):
        digest.update(str(path.relative_to(top)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def race(
    heats: Sequence[Heat], *, shelf: Shelf, processes: int, progress: Progress
) -> list[HeatReport]:
    """The reports in the order of the heats. An interrupt leaves the finished ones on the shelf."""
    reports = {number: shelf.get(heat) for number, heat in enumerate(heats)}
    missing = {number: heats[number] for number, report in reports.items() if report is None}
    done = len(heats) - len(missing)
    progress(done)
    for number, report in _run(missing, processes):
        shelf.put(report)
        reports[number] = report
        done += 1
        progress(done)
    return [report for report in reports.values() if report is not None]


def _run(heats: Mapping[int, Heat], processes: int) -> Iterator[tuple[int, HeatReport]]:
    if not heats:
        return
    # Spawned, so that a child has no state but its own, on every platform.
    pool = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_die_with_the_terminal
    )
    try:
        waiting = {pool.submit(run_heat, heat): number for number, heat in heats.items()}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _die_with_the_terminal() -> None:
    # Ctrl-C reaches children, too; the parent tells the user, once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
