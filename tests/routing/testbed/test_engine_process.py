"""The engine as a process: its ready line, its size, its end, its refusals."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.routing.testbed.helpers import MODEL, completion

pytestmark = pytest.mark.processes

START_SECONDS = 20
MOST_RESIDENT_KIB = 48 * 1024
"""Our engines have about 32 MB; the bound leaves room for other builds of Python."""

Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """`spawn("--role", "decode")` starts an engine process; it is killed after the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*options: str, accelerator: str = "amd-mi325x") -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "routing.testbed.engine", "--port", "0"]
        command += ["--model", MODEL, "--accelerator", accelerator, "--speed", "50", *options]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=START_SECONDS)


def ready(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """The engine's first line."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def ask(port: int, body: dict[str, Any]) -> Any:
    """The answer to a completion."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode()
    )
    with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def test_an_engine_says_where_it_listens_answers_and_ends_when_told(spawn: Spawn) -> None:
    process = spawn("--kv-events-port", "0")

    line = ready(process)
    answer = ask(line["port"], completion())
    process.send_signal(signal.SIGTERM)

    assert line["ready"] is True
    assert line["pid"] == process.pid
    assert line["kv_events_port"] > 0
    assert answer["usage"]["completion_tokens"] == 8
    assert process.wait(timeout=10) == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_fresh_engine_is_small(spawn: Spawn) -> None:
    process = spawn()
    ready(process)

    status = Path(f"/proc/{process.pid}/status").read_text()

    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    assert int(resident.split()[1]) < MOST_RESIDENT_KIB


@pytest.mark.parametrize(
    ("options", "accelerator", "message"),
    [
        ((), "abacus", "No profile for accelerator 'abacus'"),
        (("--speed", "0"), "amd-mi325x", "must be above 0"),
        (("--kv-tokens", "8"), "amd-mi325x", "less than one block"),
    ],
)
def test_an_impossible_engine_says_why_it_cannot_start(
    options: tuple[str, ...], accelerator: str, message: str, spawn: Spawn
) -> None:
    process = spawn(*options, accelerator=accelerator)

    _, errors = process.communicate(timeout=START_SECONDS)

    assert process.returncode == 2
    assert message in errors


def test_a_taken_port_is_named(spawn: Spawn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = spawn("--port", str(port))
        _, errors = process.communicate(timeout=START_SECONDS)

    assert process.returncode == 1
    assert f"127.0.0.1:{port}" in errors
