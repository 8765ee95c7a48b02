"""What the system says about a process and its children, and their orderly start and end."""

import json
import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def cpu_seconds(pid: int) -> float:
    """User plus system time of a process and its living descendants."""
    stats = (_stat(member) for member in family(pid))
    return sum(int(fields[11]) + int(fields[12]) for fields in stats if fields) / TICKS


def own_cpu_seconds(pid: int) -> float:
    """User plus system time of one process."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def resident_bytes(pid: int) -> int:
    """Memory of a process and its descendants."""
    stats = (_stat(member) for member in family(pid))
    return sum(int(fields[21]) for fields in stats if fields) * PAGE_BYTES


def machine_cpu_seconds() -> float:
    """Busy time of all cores together, since the start of the machine."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    busy = [int(value) for value in fields]
    return sum(busy[:3] + busy[5:8]) / TICKS


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


@contextmanager
def running(command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own group, ended with all its children."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            shlex.split(command), stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the group to end, then make it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                continue


def post(port: int, path: str, body: bytes, *, seconds: float = 10) -> Any:
    """One JSON request to a loopback port."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        body,
        {"content-type": "application/json", "authorization": "Bearer x"},
    )
    with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310 - loopback only
        text = answer.read()
    return json.loads(text) if text else None


def wait_until_serving(port: int, body: bytes, *, seconds: float = 60) -> bool:
    """Whether a router answers a completion before the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            post(port, "/v1/chat/completions", body, seconds=5)
        except OSError:
            time.sleep(0.2)
        else:
            return True
    return False


def free_ports(count: int) -> list[int]:
    """UDP ports that nobody uses at the moment."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
