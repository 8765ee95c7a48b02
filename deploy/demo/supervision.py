"""Runs the demo's processes under supervisord, which restarts what dies."""

import os
import signal
import subprocess  # fixed program, no shell
import sys
import time
import xmlrpc.client
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from controlplane.config.embedded.places import PROJECT, Places, places, prepare
from deploy.demo.options import ROUTERS, Options

START_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 45.0
WITHOUT_WAITING = False

_ROUTER_COMMAND = (
    "{python} -m routing.servers --name {name} --host 127.0.0.1 --port {port} "
    "--admin-port {admin_port} --state-dir {state} --admin-token-file {token} "
    "--gossip-port {gossip_port} --gossip-secret-file {secret} {peers}"
)


@dataclass(frozen=True)
class Program:
    """One process: what runs, in which order it starts, how it is asked to stop."""

    name: str
    command: str
    priority: int
    stop_signal: str = "TERM"
    autostart: bool = False


def programs(options: Options, folder: Path) -> list[Program]:
    """Every process of the demo; those that need tables start once these are there."""
    python = sys.executable
    celery = f"{python} -m celery -A controlplane.config.celery"
    listed = [
        Program(
            "postgres",
            f"{python} -m controlplane.config.embedded exec postgres",
            10,
            stop_signal="INT",
            autostart=True,
        ),
        Program(
            "valkey", f"{python} -m controlplane.config.embedded exec valkey", 10, autostart=True
        ),
        Program(
            "engine-host",
            f"{python} -m controlplane.serving.enginehost --port {options.engine_host_port} "
            f"--state-dir {folder / 'engine-host'} "
            f"--token-file {folder.parent / 'engine-host-token'}",
            20,
        ),
        Program(
            "web",
            f"{python} -m gunicorn controlplane.config.wsgi --bind 127.0.0.1:{options.web_port} "
            "--workers 1 --threads 4 --timeout 60 --no-control-socket --error-logfile -",
            30,
        ),
        Program(
            "worker",
            f"{celery} worker --concurrency 3 --loglevel WARNING "
            "--without-gossip --without-mingle --without-heartbeat",
            40,
        ),
        # Live races only: each keeps a process for as long as it runs, and is cut off at the end.
        Program(
            "live-worker",
            f"{celery} worker --queues live --concurrency 2 --hostname live@%%h --loglevel WARNING "
            "--without-gossip --without-mingle --without-heartbeat",
            45,
            stop_signal="QUIT",
        ),
        Program(
            "beat",
            f"{celery} beat --loglevel WARNING --schedule {folder / 'beat-schedule'} --pidfile=",
            50,
        ),
    ]
    listed.append(Program("agents", f"{python} -m deploy.demo.agents", 60))
    for name in ROUTERS:
        command = _ROUTER_COMMAND.format(
            python=python,
            name=name,
            port=options.router_ports[name],
            admin_port=options.admin_ports[name],
            state=folder / name,
            token=folder / f"{name}.token",
            gossip_port=options.gossip_ports[name],
            secret=folder / "gossip.secret",
            peers=" ".join(
                f"--peer 127.0.0.1:{port}"
                for other, port in options.gossip_ports.items()
                if other != name
            ),
        )
        listed.append(Program(name, command, 25))
    return listed


class Supervision:
    """One supervisord, its configuration and its socket."""

    def __init__(self, options: Options, environment: Mapping[str, str]) -> None:
        where = places()
        prepare(where)
        self.folder = where.var / "demo"
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket = _socket(where)
        self._options = options
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start supervisord with the servers that need nothing else."""
        configuration = self.folder / "supervisord.conf"
        listed = programs(self._options, self.folder)
        configuration.write_text(_configuration(self.socket, self.folder, listed))
        command = [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(configuration)]
        with (self.folder / "supervisord.out").open("ab") as output:
            self._process = subprocess.Popen(
                command, env=self._environment, cwd=PROJECT, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        _wait_until(self._answers, START_TIMEOUT_SECONDS, "supervisord did not answer")

    def start_programs(self, names: Iterable[str]) -> None:
        """Start programs without waiting for each to be up."""
        with connected(self.socket) as remote:
            for name in names:
                remote.startProcess(name, WITHOUT_WAITING)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            last = (self.folder / "supervisord.out").read_text(errors="replace").splitlines()[-3:]
            raise SupervisionError("supervisord ended at once: " + " / ".join(last))
        return _answers(self.socket)


class SupervisionError(Exception):
    """The demo's processes could not be started or stopped."""


@contextmanager
def connected(path: Path) -> Iterator[Any]:
    """Supervisord's remote calls over its socket, inside the block."""
    transport = SupervisorTransport(None, None, serverurl=f"unix://{path}")
    proxy: Any = xmlrpc.client.ServerProxy("http://supervisor", transport=transport)
    try:
        yield proxy.supervisor
    finally:
        transport.close()


def current_socket() -> Path:
    """Socket of this installation's supervisord, whether or not it runs."""
    return _socket(places())


def stop_survivor(folder: Path) -> bool:
    """End the supervisord of this folder with all it runs, also one whose parent was killed.

    False if there is none. Returns only once it is gone: it removes its socket last, and a
    successor's socket of the same name must not be there before.
    """
    process = _survivor(folder)
    if process is None:
        return False
    os.kill(process, signal.SIGTERM)
    _wait_until(lambda: _is_gone(process), STOP_TIMEOUT_SECONDS, "supervisord did not stop")
    return True


def _survivor(folder: Path) -> int | None:
    """Process id from the pid file, if that process is the supervisord of this folder."""
    try:
        process = int((folder / "supervisord.pid").read_text())
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ValueError):
        return None
    return process if str(folder / "supervisord.conf").encode() in command else None


def _socket(where: Places) -> Path:
    return where.sockets / "supervisor.sock"


def _answers(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        with connected(path) as remote:
            return bool(remote.getState()["statename"] == "RUNNING")
    except (OSError, xmlrpc.client.Error):
        return False


def _is_gone(process: int) -> bool:
    """True once the process has ended, also if nobody has collected its exit code yet."""
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True
    return state.rpartition(")")[2].split()[0] == "Z"


def _wait_until(condition: Any, seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SupervisionError(f"{otherwise} within {seconds:.0f} s.")
        time.sleep(0.05)


def _configuration(socket: Path, folder: Path, listed: Iterable[Program]) -> str:
    identity = "user=root\n" if os.geteuid() == 0 else ""
    head = (
        f"[unix_http_server]\nfile={socket}\nchmod=0700\n\n"
        f"[supervisord]\nlogfile={folder / 'supervisord.log'}\n"
        f"pidfile={folder / 'supervisord.pid'}\n"
        f"childlogdir={folder}\nnodaemon=true\n{identity}\n"
        "[rpcinterface:supervisor]\n"
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
    )
    return head + "".join(_section(program, folder) for program in listed)


def _section(program: Program, folder: Path) -> str:
    log = folder / f"{program.name}.log"
    return (
        f"\n[program:{program.name}]\ncommand={program.command}\ndirectory={PROJECT}\n"
        f"priority={program.priority}\nautostart={str(program.autostart).lower()}\n"
        f"autorestart=true\nstartsecs=1\nstartretries=20\nstopsignal={program.stop_signal}\n"
        f"stopwaitsecs=15\nstopasgroup=false\nkillasgroup=true\nredirect_stderr=true\n"
        f"stdout_logfile={log}\nstdout_logfile_maxbytes=10MB\nstdout_logfile_backups=1\n"
    )
