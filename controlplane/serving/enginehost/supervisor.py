"""Makes what runs equal what is wanted: one engine at a time under its name, several at once."""

import json
import logging
import secrets
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from controlplane.serving.enginehost import process
from controlplane.serving.enginehost.records import (
    EngineRecord,
    Exit,
    Run,
    read_records,
    write_record,
)
from controlplane.serving.enginehost.spec import EngineSpec, prints_ready_line

logger = logging.getLogger(__name__)

MAX_ENGINES = 256
LOG_BYTES = 4 * 1024 * 1024
LOG_KEPT_BYTES = 512 * 1024
READY_LINE_BYTES = 64 * 1024
WATCH_SECONDS = 0.2


class FencedError(Exception):
    """The caller's fencing token is older than one that was seen: another holder acts now."""


class HostFullError(Exception):
    """No more engines are taken."""


class Supervisor:
    """Engines of this machine. Wishes are on disk before they are acted on."""

    def __init__(self, folder: Path, *, project: Path, grace_seconds: float) -> None:
        self._records_folder = folder / "engines"
        self._logs = folder / "logs"
        for place in (folder, self._records_folder, self._logs):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._project = project
        self._grace = grace_seconds
        self._lock = threading.Lock()
        self._busy: dict[str, threading.Lock] = {}
        self._records: dict[str, EngineRecord] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="engine")
        self._ended = threading.Event()

    def adopt(self) -> None:
        """Take over what an earlier host left: survivors, and starts that it did not finish."""
        for record in read_records(self._records_folder):
            self._records[record.name] = record
            run = record.run
            if run and run.process is None:
                found = process.find_marked(run.nonce)
                if found is None:
                    record.run = None
                else:
                    run.pid, run.start_ticks = found.pid, found.start_ticks
            self._watch_one(record)

    def converge_all(self) -> None:
        """Start what should run and does not, end what should not; returns at once."""
        for name in list(self._records):
            self._pool.submit(self._converge_safely, name)

    def want(self, name: str, spec: EngineSpec) -> dict[str, Any]:
        """Start or replace; the same spec again starts it only if it does not run.

        Returns at once with what is seen; raises FencedError or HostFullError.
        """
        with self._lock:
            record = self._records.get(name)
            if record is None:
                if len(self._records) >= MAX_ENGINES:
                    raise HostFullError(f"This host keeps at most {MAX_ENGINES} engines.")
                record = self._records[name] = EngineRecord(name=name)
            self._check_token(record, spec.fencing_token)
            record.want(spec)
            write_record(self._records_folder, record)
        self._pool.submit(self._converge_safely, name)
        return self.seen(name) or {}

    def want_nothing(self, name: str, *, fencing_token: int) -> bool:
        """End what runs under the name; False if nothing is known of it."""
        with self._lock:
            record = self._records.get(name)
            if record is None:
                return False
            self._check_token(record, fencing_token)
            record.want_nothing(fencing_token=fencing_token)
            write_record(self._records_folder, record)
        self._pool.submit(self._converge_safely, name)
        return True

    def seen(self, name: str) -> dict[str, Any] | None:
        """What is true of one engine, or None."""
        with self._lock:
            record = self._records.get(name)
            return None if record is None else _seen(record)

    def all_seen(self) -> list[dict[str, Any]]:
        """What is true of every engine, by name."""
        with self._lock:
            return [_seen(self._records[name]) for name in sorted(self._records)]

    def log_tail(self, name: str, size: int) -> bytes:
        """Last bytes of the engine's output; empty if there is none."""
        try:
            with (self._logs / f"{name}.log").open("rb") as file:
                end = file.seek(0, 2)
                file.seek(max(0, end - size))
                return file.read(size)
        except OSError:
            return b""

    def watch(self) -> None:
        """Notice ready lines, exits and long logs until `close`; runs in a thread of its own."""
        while not self._ended.wait(WATCH_SECONDS):
            with self._lock:
                records = list(self._records.values())
            for record in records:
                try:
                    self._watch_one(record)
                    _shorten(self._logs / f"{record.name}.log")
                except Exception:  # edge of the thread: one engine must not stop the watch
                    logger.exception("Watching engine %s failed", record.name)

    def close(self) -> None:
        """Stop watching; engines go on."""
        self._ended.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def end_all(self) -> None:
        """End every engine and forget nothing: what is wanted stays, so a restart starts them."""
        with self._lock:
            names = list(self._records)
        list(self._pool.map(self._end_run, names))

    def _check_token(self, record: EngineRecord, token: int) -> None:
        if token < record.fencing_token:
            raise FencedError(
                f"Fencing token {token} is older than {record.fencing_token}, which was seen for "
                f"'{record.name}': another holder acts on it."
            )

    def _converge_safely(self, name: str) -> None:
        try:
            self._converge(name)
        except Exception as error:
            logger.exception("Engine %s could not be started or ended", name)
            with self._lock:
                self._records[name].failure = f"{type(error).__name__}: {error}"[:500]

    def _converge(self, name: str) -> None:
        with self._lock:
            busy = self._busy.setdefault(name, threading.Lock())
        with busy:
            record = self._records[name]
            self._watch_one(record)
            with self._lock:
                run, wanted = record.run, record.spec_hash
            if run and run.spec_hash == wanted:
                return
            if run:
                self._end_run(name)
            if wanted is not None:
                self._start(record)

    def _end_run(self, name: str) -> None:
        record = self._records[name]
        run = record.run
        if run is None:
            return
        run.ending = True
        if run.process:
            process.end(run.process, grace_seconds=self._grace)
        self._note_exit(record, run)

    def _start(self, record: EngineRecord) -> None:
        with self._lock:
            spec_hash, argv, env = record.spec_hash, record.argv, dict(record.env)
            if spec_hash is None:
                return
            argv, port = _with_port(argv)
            run = Run(
                spec_hash=spec_hash,
                generation=record.generation,
                nonce=secrets.token_hex(8),
                port=port,
                started_at=_now(),
            )
            record.run, record.starts = run, record.starts + 1
            # The intent with its nonce is on disk before the process is there.
            write_record(self._records_folder, record)
        log = self._logs / f"{record.name}.log"
        if log.exists():
            log.replace(log.with_suffix(".previous.log"))
        try:
            child = process.start(argv, env=env, nonce=run.nonce, log=log, folder=self._project)
        except OSError as error:
            with self._lock:
                record.run, record.failure = None, f"{argv[0]} did not start: {error}"[:500]
                write_record(self._records_folder, record)
            return
        with self._lock:
            run.pid, run.start_ticks = child.pid, process.start_ticks(child.pid) or 0
            self._children[run.nonce] = child
            write_record(self._records_folder, record)

    def _watch_one(self, record: EngineRecord) -> None:
        run = record.run
        if run is None or run.process is None:
            return  # nothing runs, or a start is on its way
        child = self._children.get(run.nonce)
        alive = process.is_alive(run.process) if child is None else child.poll() is None
        if alive:
            self._look_for_ready_line(record, run)
        else:
            self._note_exit(record, run)

    def _look_for_ready_line(self, record: EngineRecord, run: Run) -> None:
        if run.ready_at is not None or not prints_ready_line(record.argv):
            return
        port = _ready_port(self._logs / f"{record.name}.log")
        if port is None:
            return
        with self._lock:
            run.port, run.ready_at = port, _now()
            write_record(self._records_folder, record)

    def _note_exit(self, record: EngineRecord, run: Run) -> None:
        child = self._children.get(run.nonce)
        code = None
        if child is not None:
            try:
                code = child.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                logger.warning("Engine %s did not end in time", record.name)
        with self._lock:
            if record.run is not run:
                return
            # Only whoever writes the exit forgets the child: it alone knows the code.
            self._children.pop(run.nonce, None)
            record.run = None
            record.last_exit = Exit(pid=run.pid, code=code, at=_now(), wanted=run.ending)
            write_record(self._records_folder, record)


def _seen(record: EngineRecord) -> dict[str, Any]:
    run, last_exit = record.run, record.last_exit
    return {
        "name": record.name,
        "state": _state(record),
        "wanted_spec_hash": record.spec_hash,
        "wanted_generation": record.generation,
        "fencing_token": record.fencing_token,
        "starts": record.starts,
        "failure": record.failure,
        "spec_hash": run.spec_hash if run else None,
        "generation": run.generation if run else None,
        "pid": run.pid if run else None,
        "port": run.port if run else None,
        "instance": run.nonce if run else None,
        "started_at": run.started_at if run else None,
        "exit": None
        if last_exit is None
        else {
            "pid": last_exit.pid,
            "code": last_exit.code,
            "at": last_exit.at,
            "wanted": last_exit.wanted,
        },
    }


def _state(record: EngineRecord) -> str:
    run = record.run
    if run is None:
        if record.spec_hash is None:
            return "absent"
        return "failed" if record.failure else ("exited" if record.starts else "starting")
    if run.spec_hash != record.spec_hash:
        return "ending"
    return "running" if run.port is not None and run.pid is not None else "starting"


def _with_port(argv: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
    """Words with a port in place of 0; engines that print a ready line choose their own."""
    if "--port" not in argv:
        return argv, None
    place = argv.index("--port") + 1
    if argv[place] != "0":
        return argv, int(argv[place])
    if prints_ready_line(argv):
        return argv, None
    port = process.free_port("127.0.0.1")
    return (*argv[:place], str(port), *argv[place + 1 :]), port


def _ready_port(log: Path) -> int | None:
    try:
        with log.open("rb") as file:
            head = file.read(READY_LINE_BYTES)
    except OSError:
        return None
    for line in head.split(b"\n"):
        if line.startswith(b"{") and b'"ready"' in line:
            try:
                return int(json.loads(line)["port"])
            except (ValueError, KeyError, TypeError):
                continue
    return None


def _shorten(log: Path) -> None:
    """Keep the tail of a long log; the engine appends, so it goes on at the new end."""
    try:
        if log.stat().st_size <= LOG_BYTES:
            return
        with log.open("rb+") as file:
            file.seek(-LOG_KEPT_BYTES, 2)
            tail = file.read()
            file.truncate(0)
            file.seek(0)
            file.write(tail)
    except OSError:
        return


def _now() -> float:
    return time.clock_gettime(time.CLOCK_REALTIME)
