"""The embedded servers as processes: start, take over, stop; as root and as somebody else."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import django
import pytest

from controlplane.config.embedded.places import PROJECT

pytestmark = pytest.mark.processes
NOBODY = 65534
DEADLINE_SECONDS = 60


INTERPRETERS = (sys.executable, "/usr/bin/python3")
"""The second one is for a user who cannot enter the home of the first."""
PACKAGES = Path(django.__file__).parents[1]


def _python(user: int, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run Python on the project as a user, with the first interpreter that the user can run."""
    environment = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "BROKER_URL"}}
    environment |= {"PYTHONPATH": f"{PROJECT}:{PACKAGES}", "PYTHONDONTWRITEBYTECODE": "1"}
    identity = {"user": user, "group": user, "extra_groups": []} if user != os.geteuid() else {}
    for interpreter in INTERPRETERS:
        try:
            return subprocess.run(
                [interpreter, *arguments], cwd="/", env=environment | variables, timeout=120,
                capture_output=True, text=True, check=False, **identity,
            )  # fmt: skip
        except (PermissionError, FileNotFoundError):
            continue
    return subprocess.CompletedProcess([], 1, "", "no interpreter for this user")


@dataclass
class Installation:
    """Servers of a folder of their own, started by a user."""

    var: Path
    user: int

    def run(self, *arguments: str) -> str:
        """Output of one command of the embedded servers."""
        command = ("-m", "controlplane.config.embedded", *arguments)
        done = _python(self.user, *command, CONSORT_VAR=str(self.var), HOME=str(self.var))
        assert done.returncode == 0, done.stderr
        return done.stdout

    @cached_property
    def home(self) -> str:
        """Folder of the servers' files; stands in their command lines."""
        code = "from controlplane.config.embedded.places import places; print(places().home)"
        return _python(self.user, "-c", code, CONSORT_VAR=str(self.var)).stdout.strip()

    def pids(self) -> dict[str, int]:
        """Process ids of the servers that run, by name."""
        found = {}
        for folder in Path("/proc").iterdir():
            command = _command(folder)
            if self.home in command:
                found["postgres" if "bin/postgres" in command else "valkey"] = int(folder.name)
        return found


def _command(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        # No process, or one that ended meanwhile.
        return ""


def _users() -> list[int]:
    """This user; root also tests as nobody, where nobody can read the checkout."""
    probe = _python(NOBODY, "-c", "import controlplane.config.embedded.places")
    return [os.geteuid(), NOBODY] if os.geteuid() == 0 and not probe.returncode else [os.geteuid()]


@pytest.fixture(params=_users(), ids=lambda user: "root" if user == 0 else f"user-{user}")
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """Servers that are stopped and whose files are gone at the end."""
    var = Path(tempfile.mkdtemp(prefix="consort-test-"))
    os.chown(var, request.param, request.param)
    servers = Installation(var=var, user=request.param)
    yield servers
    servers.run("stop")
    shutil.rmtree(servers.home, ignore_errors=True)
    shutil.rmtree(var, ignore_errors=True)


def test_servers_start_once_survive_and_stop_and_postgres_is_not_root(
    installation: Installation,
) -> None:
    installation.run("start")
    first = installation.pids()

    installation.run("start")
    second = installation.pids()

    assert set(first) == {"postgres", "valkey"}
    assert second == first
    assert Path(f"/proc/{first['postgres']}").stat().st_uid != 0
    assert installation.run("status") == "postgres up\nvalkey up\n"
    installation.run("stop")
    assert installation.run("status") == "postgres down\nvalkey down\n"
    assert installation.pids() == {}


def test_a_killed_server_is_started_again_with_its_data(installation: Installation) -> None:
    installation.run("start")
    killed = installation.pids()

    for pid in killed.values():
        os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + DEADLINE_SECONDS
    while set(installation.pids().values()) & set(killed.values()):
        assert time.monotonic() < until
        time.sleep(0.05)
    installation.run("start")

    assert set(installation.pids()) == set(killed)
    assert not set(installation.pids().values()) & set(killed.values())


def test_a_wrong_command_says_which_there_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "controlplane.config.embedded", "begin"], cwd=PROJECT, timeout=60,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert "start | stop | status" in done.stderr
