"""Real processes for tests of serving: an engine host and routers, ended by their ids."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

TOKEN = "a-token-of-the-tests-0123456789-0123456789"
PROJECT = Path(__file__).resolve().parents[3]
HOST = [sys.executable, "-m", "controlplane.serving.enginehost"]


def until(condition: Callable[[], Any], *, seconds: float = 20) -> Any:
    """The first true answer; fails after the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


def secret_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "token"
    path.touch(mode=0o600)
    path.write_text(TOKEN)
    return path


class EngineHost:
    """One engine host with its state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token_file = secret_file(folder)
        self.start()

    def start(self) -> None:
        self.child = subprocess.Popen(
            [*HOST, "--port", "0", "--state-dir", str(self.folder), "--grace-seconds", "3",
             "--token-file", str(self.token_file)],
            stdout=subprocess.PIPE, cwd=PROJECT,
        )  # fmt: skip
        assert self.child.stdout is not None
        self.url = f"http://127.0.0.1:{json.loads(self.child.stdout.readline())['port']}"
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10
        )

    def kill(self) -> None:
        self.child.kill()
        self.close()

    def close(self) -> None:
        self.client.close()
        self.child.terminate()
        self.child.wait(10)
        assert self.child.stdout is not None
        self.child.stdout.close()

    def end_engines(self) -> None:
        words = [*HOST, "--state-dir", str(self.folder), "--end-engines"]
        subprocess.run(words, check=True, cwd=PROJECT, timeout=30)

    def seen(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.get(f"/engines/{name}").json()
        return answer


class RouterProcess:
    """One real router with its state folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.token_file = secret_file(folder)
        self.ports: tuple[int, int] | None = None
        self.start()

    def start(self) -> None:
        public, admin = self.ports or (0, 0)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "routing.servers", "--name", self.name, "--host", "127.0.0.1",
             "--port", str(public), "--admin-port", str(admin), "--state-dir",
             str(self.folder / "state"), "--admin-token-file", str(self.token_file)],
            stdout=subprocess.PIPE, cwd=PROJECT,
        )  # fmt: skip
        assert self.child.stdout is not None
        ready = json.loads(self.child.stdout.readline())
        self.ports = (ready["port"], ready["admin_port"])
        self.public_url = f"http://127.0.0.1:{ready['port']}"
        self.admin_url = f"http://127.0.0.1:{ready['admin_port']}"

    def kill(self) -> None:
        self.child.kill()
        self.close()

    def close(self) -> None:
        self.child.terminate()
        self.child.wait(15)
        assert self.child.stdout is not None
        self.child.stdout.close()
