"""What the engine host knows of each engine, on disk before it is acted on."""

import fcntl
import json
import logging
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from controlplane.serving.enginehost.process import ProcessId
from controlplane.serving.enginehost.spec import EngineSpec

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Run:
    """One life of an engine's process; `pid` is None between the intent and the start."""

    spec_hash: str
    generation: int
    nonce: str
    port: int | None
    started_at: float
    pid: int | None = None
    start_ticks: int | None = None
    ready_at: float | None = None
    ending: bool = False
    """The host ends it on request."""

    @property
    def process(self) -> ProcessId | None:
        """The process, once it is known."""
        if self.pid is None or self.start_ticks is None:
            return None
        return ProcessId(self.pid, self.start_ticks)


@dataclass(slots=True, kw_only=True)
class Exit:
    """How a process ended. `code` is None when it was not a child of this host: unknown."""

    pid: int | None
    code: int | None
    at: float
    wanted: bool
    """True when the host ended it on request."""


@dataclass(slots=True, kw_only=True)
class EngineRecord:
    """An engine by name: what is wanted, what runs, how the last one ended."""

    name: str
    fencing_token: int = 0
    spec_hash: str | None = None
    """What is wanted; None when nothing should run."""
    generation: int = 0
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    run: Run | None = None
    last_exit: Exit | None = None
    failure: str = ""
    starts: int = 0
    """Starts of the wanted spec; above 1 it was started again after an exit."""

    def want(self, spec: EngineSpec) -> None:
        """Take over a spec; counting of starts begins anew when it differs."""
        if spec.spec_hash != self.spec_hash:
            self.starts = 0
        self.spec_hash, self.generation = spec.spec_hash, spec.generation
        self.fencing_token = spec.fencing_token
        self.argv, self.env = spec.argv, dict(spec.env)
        self.failure = ""

    def want_nothing(self, *, fencing_token: int) -> None:
        """Nothing should run under this name."""
        self.spec_hash, self.fencing_token = None, fencing_token
        self.argv, self.env, self.failure, self.starts = (), {}, "", 0


def claimed(folder: Path) -> IO[str] | None:
    """The folder's lock, held while the returned file is open; None if another host has it."""
    file = (folder / "lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def write_record(folder: Path, record: EngineRecord) -> None:
    """Replace the engine's file in one step (mode 0600)."""
    path = folder / f"{record.name}.json"
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(record), file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_records(folder: Path) -> list[EngineRecord]:
    """All records of a folder, by name; one that cannot be read is put aside and said."""
    records = []
    for path in sorted(folder.glob("*.json")):
        try:
            records.append(_record(json.loads(path.read_text())))
        except (ValueError, TypeError, KeyError) as error:
            aside = path.with_suffix(".unreadable")
            path.replace(aside)
            logger.warning("The record %s cannot be read (%s); it is now %s", path, error, aside)
    return records


def _record(values: dict[str, Any]) -> EngineRecord:
    run, last_exit = values.pop("run"), values.pop("last_exit")
    values["argv"] = tuple(values["argv"])
    return EngineRecord(
        **values,
        run=Run(**run) if run else None,
        last_exit=Exit(**last_exit) if last_exit else None,
    )
