"""A whole demo as a black box: started by its command, driven over its addresses."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from deploy.demo.supervision import connected

ROOT = Path(__file__).resolve().parents[2]
MODEL = "granite-4.1-8b"
PORTS = ("DEMO_WEB_PORT", "DEMO_ENGINE_HOST_PORT", "DEMO_ROUTER_A_PORT", "DEMO_ROUTER_B_PORT",
         "DEMO_ROUTER_A_ADMIN_PORT", "DEMO_ROUTER_B_ADMIN_PORT", "DEMO_ROUTER_A_GOSSIP_PORT",
         "DEMO_ROUTER_B_GOSSIP_PORT")  # fmt: skip


def until(condition: Callable[[], Any], *, seconds: float, what: str) -> Any:
    """The first true value of the condition; fails with a sentence after the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds:.0f} s")


class Demo:
    """One run of `python -m deploy.demo` without an end of its own."""

    def __init__(self) -> None:
        self.var = Path(tempfile.mkdtemp(prefix="consort-e2e-"))
        self.ports = _free_ports()
        self.report_file = self.var / "report.json"
        self.output = self.var / "demo.out"
        self._environment = os.environ | self.ports | {
            "CONSORT_VAR": str(self.var), "DEMO_QUIET_RATE": "0",
            # A change goes on so long after its worker was killed.
            "SERVING_LEASE_SECONDS": "5",
        }  # fmt: skip
        for name in ("DATABASE_URL", "BROKER_URL", "TEST_DATABASE"):
            self._environment.pop(name, None)
        self._process: subprocess.Popen[bytes] | None = None
        self._people: dict[str, Person] = {}

    def start(self) -> None:
        """Start it and wait until the comparison of policies is reported."""
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "deploy.demo", "--report", str(self.report_file)],
                cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        until(self._is_reported, seconds=420, what="the demo's report")

    def stop(self) -> int:
        """Ctrl-C, and the exit code; then nothing of it is left."""
        for person in self._people.values():
            person.close()
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(timeout=90)
        subprocess.run(
            [sys.executable, "-m", "deploy.demo.reset"],
            cwd=ROOT, env=self._environment, check=True, timeout=90, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        shutil.rmtree(self.var, ignore_errors=True)
        return code

    @property
    def url(self) -> str:
        """Address of the console."""
        return f"http://127.0.0.1:{self.ports['DEMO_WEB_PORT']}"

    @property
    def routers(self) -> dict[str, str]:
        """Public address of each router."""
        return {
            "router-a": f"http://127.0.0.1:{self.ports['DEMO_ROUTER_A_PORT']}",
            "router-b": f"http://127.0.0.1:{self.ports['DEMO_ROUTER_B_PORT']}",
        }

    def router_state(self, name: str) -> dict[str, Any]:
        """What a router says of itself."""
        port = self.ports[f"DEMO_ROUTER_{name[-1].upper()}_ADMIN_PORT"]
        token = (self.var / "demo" / f"{name}.token").read_text().strip()
        return _json(f"http://127.0.0.1:{port}/admin/state", token)

    def engines(self) -> dict[str, dict[str, Any]]:
        """What the engine host runs, by name."""
        token = (self.var / "engine-host-token").read_text().strip()
        listed = _json(f"http://127.0.0.1:{self.ports['DEMO_ENGINE_HOST_PORT']}/engines", token)
        return {engine["name"]: engine for engine in listed["engines"]}

    def pid_of(self, program: str) -> int:
        """Process id of a program under the demo's supervisor."""
        return int(self._process_info(program)["pid"])

    def is_running(self, program: str) -> bool:
        """True while the supervisor sees the program up."""
        return bool(self._process_info(program)["statename"] == "RUNNING")

    @property
    def key(self) -> str:
        """The inference key that the demo prints."""
        found = re.search(r"Bearer (csk_\S+)'", self.output.read_text())
        assert found is not None
        return found[1]

    def answers(self) -> bool:
        """True while the console answers."""
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False

    def password(self, username: str) -> str:
        """The password that the demo prints for a person."""
        found = re.search(rf"^\s+{username}\s+(\S+)$", self.output.read_text(), re.M)
        assert found is not None
        return found[1]

    def person(self, username: str) -> "Person":
        """Somebody who is logged in."""
        if username not in self._people:
            self._people[username] = Person(self.url, username, self.password(username))
        return self._people[username]

    def _process_info(self, program: str) -> dict[str, Any]:
        with connected(self._socket()) as remote:
            return dict(remote.getProcessInfo(program))

    def _socket(self) -> Path:
        found = re.search(
            r"^file=(.+)$", (self.var / "demo" / "supervisord.conf").read_text(), re.M
        )
        assert found is not None
        return Path(found[1])

    def _is_reported(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the demo ended: {self.output.read_text()[-2000:]}")
        return self.report_file.exists()


class Person:
    """A person's session with the console and, through it, the API."""

    def __init__(self, url: str, username: str, password: str) -> None:
        # No connection is kept: one to a killed process would answer the next request with a reset.
        self._client = httpx.Client(
            base_url=url,
            timeout=30.0,
            follow_redirects=True,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        page = self._client.get("/login").text
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token is not None
        answer = self._client.post(
            "/login",
            data={"csrfmiddlewaretoken": token[1], "username": username, "password": password},
            headers={"Referer": f"{url}/login"},
        )
        assert "sessionid" in self._client.cookies, answer.text

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, **parameters: str) -> Any:
        """JSON of an API path."""
        answer = self._client.get(f"/api/v1{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: dict[str, Any], *, etag: str = "") -> httpx.Response:
        """Answer to a POST with a key of its own."""
        headers = {
            "X-CSRFToken": self._client.cookies["csrftoken"],
            "Referer": str(self._client.base_url),
            "Idempotency-Key": str(uuid.uuid4()),
        }
        if etag:
            headers["If-Match"] = etag
        return self._client.post(f"/api/v1{path}", json=body, headers=headers)

    def act(self, plan: str, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Do something to a change plan as it is now."""
        tag = self._client.get(f"/api/v1/change-plans/{plan}").headers["ETag"]
        answer = self.post(f"/change-plans/{plan}/{verb}", body or {}, etag=tag)
        assert answer.status_code in {200, 202}, answer.text
        return dict(answer.json())


def _free_ports() -> dict[str, str]:
    sockets = [socket.socket() for _ in PORTS]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = {name: str(each.getsockname()[1]) for name, each in zip(PORTS, sockets, strict=True)}
    for each in sockets:
        each.close()
    return ports


def _json(url: str, token: str) -> dict[str, Any]:
    answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=10.0)
    answer.raise_for_status()
    return dict(json.loads(answer.content))
