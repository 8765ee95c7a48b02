"""Processes by id and start time, so that a reused id is never taken for an engine."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MARK = "CONSORT_ENGINE"
"""Variable in each engine's environment: the nonce by which a restarted host finds it."""
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
"""Engines get no other variable of the host, so no secret of it either."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process: id, and the clock ticks since boot at which it started."""

    pid: int
    start_ticks: int


def start_ticks(pid: int) -> int | None:
    """When the process started, or None if there is none (a zombie counts as none)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def is_alive(process: ProcessId) -> bool:
    """True as long as exactly this process runs."""
    return start_ticks(process.pid) == process.start_ticks


def start(
    argv: tuple[str, ...], *, env: Mapping[str, str], nonce: str, log: Path, folder: Path
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, its output appended to `log` (mode 0600)."""
    words = [sys.executable if argv[0] == "python" else argv[0], *argv[1:]]
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        # The words come from an allow-list, and no shell reads them.
        return subprocess.Popen(
            words,
            env={**kept, **env, MARK: nonce},
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


def find_marked(nonce: str) -> ProcessId | None:
    """The session leader that carries the mark; for a start whose process id was never written."""
    wanted = f"{MARK}={nonce}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            marked = wanted in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(folder.name)
        if marked and _leads_session(pid):
            ticks = start_ticks(pid)
            return None if ticks is None else ProcessId(pid, ticks)
    return None


def end(process: ProcessId, *, grace_seconds: float) -> None:
    """End the process and its group: SIGTERM, after the grace time SIGKILL; returns when gone."""
    if is_alive(process):
        _signal_group(process.pid, signal.SIGTERM)
        _wait_gone(process, grace_seconds)
    if is_alive(process):
        _signal_group(process.pid, signal.SIGKILL)
        _wait_gone(process, 10.0)


def free_port(host: str) -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _wait_gone(process: ProcessId, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.02)
