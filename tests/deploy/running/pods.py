"""Pods without a cluster: our parts as processes of this machine, shut in as the kubelet would.

A pod is a process with a root folder of its own, put together from bind mounts: libraries and tree
of its image, volumes at their paths, everything else read only; a user that is not root, without
any capability. All pods share one network namespace, with loopback alone, so that ports are those
that are written down and nothing leaves. Needs root on Linux; elsewhere tests are left out.
"""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deploy.containers.dockerfiles import HOME, interpreter, stages

_NETWORK = """
import fcntl, socket, struct, sys
with socket.socket() as line:
    fcntl.ioctl(line, 0x8914, struct.pack("16sh", b"lo", 1 | 64))
print("up", flush=True)
sys.stdin.read()
"""
_SHUT_IN = """
set -eu
root=$1; shift
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    mount --rbind "$2" "$root$3"
    if [ "$1" = ro ]; then mount -o remount,bind,ro "$root$3"; fi
    shift 3
done
shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"
"""
_ASK = """
import http.client, json, ssl, sys, urllib.parse
asked = json.load(sys.stdin)
parts = urllib.parse.urlsplit(asked["url"])
path = parts.path + (f"?{parts.query}" if parts.query else "")
if parts.scheme == "https":
    anybody = ssl._create_unverified_context()
    line = http.client.HTTPSConnection(parts.netloc, timeout=30, context=anybody)
else:
    line = http.client.HTTPConnection(parts.netloc, timeout=30)
try:
    line.request("POST" if asked["body"] else "GET", path, asked["body"], asked["headers"])
    answer = line.getresponse()
    found = [answer.status, answer.read().decode(), answer.headers.get_all("Set-Cookie") or []]
except OSError as error:
    found = [0, str(error), []]
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Mount:
    """A folder or file of this machine at a path of a pod."""

    source: Path
    target: str
    is_writable: bool = False

    @property
    def words(self) -> tuple[str, str, str]:
        """As the script reads it."""
        return "rw" if self.is_writable else "ro", str(self.source), self.target


@dataclass(frozen=True)
class Answer:
    """What somebody in the network was answered; status 0 for nothing."""

    status: int
    text: str
    cookies: list[str]


@dataclass(frozen=True)
class Container:
    """What a chart or Compose file says of one container, with its volumes on this machine."""

    image: str
    """Name of the container file."""
    arguments: Sequence[str]
    environment: Mapping[str, str]
    mounts: Sequence[Mount]


def until(condition: Callable[[], Any], *, seconds: float, what: Callable[[], str]) -> Any:
    """The first true value of the condition; fails with a sentence after the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds:g} s: {what()}")


@dataclass
class Pod:
    """A running container."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    network: int

    def log(self) -> str:
        """The end of what it has said."""
        return f"{self.name}:\n{self.output.read_text(errors='replace')[-3000:]}"

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as the process's own user: what `kubectl exec` does."""
        found = Path(f"/proc/{self.process.pid}")
        status = dict(
            line.split(":", 1)
            for line in (found / "status").read_text().splitlines()
            if ":" in line
        )
        user = status["Uid"].split()[0]
        variables = (found / "environ").read_bytes().decode().strip("\0").split("\0")
        return subprocess.run(
            ["nsenter", f"--target={self.process.pid}", "--mount", "--net", "--root",
             "chroot", f"--userspec={user}:{user}", "/", "/usr/bin/env", "-i", f"--chdir={HOME}",
             *variables, *command],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def status(self, name: str) -> str:
        """A line of /proc/PID/status."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (found,) = [line for line in lines if line.startswith(f"{name}:")]
        return found.partition(":")[2].strip()

    def end(self, seconds: float) -> int:
        """Ask it to end, as the kubelet does, and return its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=seconds)


@dataclass
class Site:
    """Pods that share a network."""

    folder: Path
    user: int
    hosts: Mapping[str, str]
    network: int
    pods: list[Pod] = field(default_factory=list)

    def start(self, name: str, container: Container) -> Pod:
        """Start a container; it is ended with the site."""
        root = self._root(name, container)
        output = self.folder / f"{name}.log"
        words: list[str] = []
        for mount in self._mounts(container):
            _make_place(root, mount)
            words += mount.words
        command = [
            *self.inside,
            "unshare", "--mount", "--propagation=private",
            "sh", "-c", _SHUT_IN, "sh", str(root), *words, "--",
            "/usr/bin/setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups",
            "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all",
            "/usr/bin/env", "-i", f"--chdir={HOME}",
            *(f"{key}={value}" for key, value in self._environment(container).items()),
            *container.arguments,
        ]  # fmt: skip
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
        pod = Pod(name, process, output, self.network)
        self.pods.append(pod)
        return pod

    def ask(self, url: str, body: str = "", **headers: str) -> Answer:
        """One request inside the network; believes anybody and follows no redirection."""
        asked = {"url": url, "headers": headers, "body": body}
        done = subprocess.run(
            [*self.inside, sys.executable, "-c", _ASK], input=json.dumps(asked), text=True,
            capture_output=True, timeout=60, check=True,
        )  # fmt: skip
        return Answer(*json.loads(done.stdout))

    def run(self, *command: str) -> subprocess.Popen[bytes]:
        """Something of this machine inside the network, such as a store."""
        return subprocess.Popen([*self.inside, *command])

    @property
    def inside(self) -> tuple[str, ...]:
        """Begins a command that runs inside the network."""
        return "nsenter", f"--net=/proc/{self.network}/ns/net"

    def _root(self, name: str, container: Container) -> Path:
        root = self.folder / name
        for place in ("usr", "etc", "proc", "dev", "tmp", "run", "opt", "var/lib"):
            (root / place).mkdir(parents=True)
        for link in ("bin", "sbin", "lib", "lib64"):
            (root / link).symlink_to(f"usr/{link}")
        names = "".join(f"{address} {host}\n" for host, address in self.hosts.items())
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (root / "etc/nsswitch.conf").write_text("hosts: files\n")
        return root

    def _mounts(self, container: Container) -> Iterator[Mount]:
        base = Path(sys.base_prefix)
        yield Mount(Path("/usr"), "/usr")
        if not base.is_relative_to("/usr"):
            yield Mount(base, str(base))
        yield Mount(Path(interpreter(container.image)).parents[1], "/opt/venv")
        yield from container.mounts

    def _environment(self, container: Container) -> dict[str, str]:
        """Of the image, then of the container."""
        found = {"PATH": "/usr/bin:/bin"}
        for line in stages(container.image)[-1].of("ENV"):
            for word in shlex.split(line):
                key, _, value = word.partition("=")
                found[key] = value.replace("$PATH", found["PATH"])
        return found | dict(container.environment)


def _make_place(root: Path, mount: Mount) -> None:
    place = root / mount.target.lstrip("/")
    if mount.source.is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    """Killed at once, a part would leave its own processes behind."""
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def site(folder: Path, *, user: int, hosts: Sequence[str]) -> Iterator[Site]:
    """A network with these names, all of them this machine; its pods are ended with it."""
    command = ["unshare", "--net", sys.executable, "-c", _NETWORK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as network:
        assert network.stdout is not None
        assert network.stdout.readline() == b"up\n"
        folder.mkdir(parents=True)
        opened = Site(folder, user, dict.fromkeys(hosts, "127.0.0.1"), network.pid)
        try:
            yield opened
        finally:
            for pod in opened.pods:
                pod.process.terminate()
            for pod in opened.pods:
                _wait_or_kill(pod.process)
            network.communicate()
