"""Routers, engines and Envoy as processes of a test session."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from deploy.envoy.bootstrap import bootstrap
from deploy.envoy.wiring import Address, Wiring
from routing.core.document import PoolDocument, encode_document
from tests.e2e.envoy.binary import envoy_binary
from tests.routing.servers.scripted import ADMIN_TOKEN, MODEL

START_SECONDS = 40.0
HERE = "127.0.0.1"
ADMIN = {"authorization": f"Bearer {ADMIN_TOKEN}"}


@contextmanager
def told(*arguments: str) -> Iterator[dict[str, Any]]:
    """A process of ours; yields the line with its ports. It has ended afterwards."""
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
        finally:
            _end(process)


@contextmanager
def engine(*, speed: float = 20.0, adapter: str | None = None, role: str = "both") -> Iterator[int]:
    """A testbed engine; yields its port."""
    arguments = ("--port", "0", "--model", MODEL, "--speed", str(speed))
    more = [
        "--accelerator",
        "amd-mi325x",
        "--role",
        role,
        *(("--lora", adapter) if adapter else ()),
    ]
    with told("routing.testbed.engine", *arguments, *more) as ready:
        yield ready["port"]


@contextmanager
def router(
    folder: Path, *documents: PoolDocument, options: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """A router with every face that has the documents; yields its ports."""
    folder.mkdir()
    token = folder / "token"
    token.write_text(ADMIN_TOKEN)
    faces = ("--authz-port", "0", "--ext-proc-port", "0", "--health-port", "0")
    places = ("--state-dir", str(folder / "state"), "--admin-token-file", str(token))
    ports = ("--port", "0", "--admin-port", "0")
    with told("routing.servers", "--name", "r1", *ports, *places, *faces, *options) as ready:
        url = f"http://{HERE}:{ready['admin_port']}/admin/pool-document"
        for document in documents:
            answer = httpx.put(url, content=encode_document(document), headers=ADMIN, timeout=20)
            assert answer.status_code == 200, answer.text
        yield ready


@contextmanager
def envoy(folder: Path, **parts: Any) -> Iterator[str]:
    """Envoy with a wiring's bootstrap on a free port; yields its address once it serves."""
    folder.mkdir()
    nowhere = Address(HERE, 0)
    wiring = Wiring(listen=nowhere, admin=nowhere, **parts)
    (folder / "envoy.yaml").write_text(bootstrap(wiring))
    told_at = folder / "admin"
    command = [envoy_binary(), "-c", folder / "envoy.yaml", "--admin-address-path", told_at]
    more = ["--concurrency", "1", "--disable-hot-restart", "-l", "warning"]
    more += ["--file-flush-interval-msec", "100"]
    with (
        (folder / "access.log").open("wb") as log,
        subprocess.Popen([*command, *more], stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield f"http://{HERE}:{_listener(told_at, process, folder)}"
        finally:
            _end(process)


def access_log(folder: Path) -> list[dict[str, Any]]:
    """Lines of an Envoy's access log so far."""
    lines = (folder / "access.log").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def _listener(told_at: Path, process: subprocess.Popen[bytes], folder: Path) -> int:
    """Port of the listener, which opens when the first health check of its pickers is done.

    Envoy tells the port when it has bound it; a little later its workers listen.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        port = _bound_port(told_at)
        if port is not None and _listens(port):
            return port
        time.sleep(0.05)
    raise AssertionError(f"Envoy does not serve: {(folder / 'access.log').read_text()}")


def _bound_port(told_at: Path) -> int | None:
    admin = told_at.read_text().strip() if told_at.exists() else ""
    if not admin:
        return None
    found = httpx.get(f"http://{admin}/listeners?format=json", timeout=5).json()
    for one in found.get("listener_statuses", []):
        return int(one["local_address"]["socket_address"]["port_value"])
    return None


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HERE, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
