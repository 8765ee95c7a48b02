"""One installation of the demo: starts its processes, writes its site, stops everything."""

import os
import secrets
import time
from collections.abc import Callable
from typing import IO

import httpx

from controlplane.config.embedded import locks, postgres, valkey
from deploy.demo import leftovers
from deploy.demo.options import ROUTERS, Options, OptionsError, check_ports, environment_of
from deploy.demo.supervision import Supervision

START_TIMEOUT_SECONDS = 180.0
"""The console needs some 5 s of CPU time, and a machine may have ten others who want it."""
AFTER_TABLES = ("engine-host", *ROUTERS, "web", "worker", "live-worker", "beat", "agents")


class InstallationError(Exception):
    """A part of the demo did not come up; the message names it and its log."""


class Installation:
    """Everything that `make demo` runs. `start` and `stop` may each be called once."""

    def __init__(self, options: Options, *, say: Callable[[str], None]) -> None:
        self.options = options
        self._say = say
        self.environment = environment_of(options)
        os.environ.update(self.environment)
        self.supervision = Supervision(options, self.environment)
        self._lock: IO[str] | None = None

    def start(self) -> None:
        """The servers, and nothing that needs tables. Raises OptionsError or InstallationError."""
        self._claim()
        leftovers.end(self.supervision.folder)
        check_ports(self.options)
        self._say("Starting PostgreSQL 18 and Valkey 9 …")
        self.supervision.start()
        self._until(postgres.is_running, "postgres")
        self._until(valkey.is_running, "valkey")
        for router in ROUTERS:
            self.router_token(router)
        self._secret("gossip.secret")

    def start_programs(self) -> None:
        """Console, worker, beat, routers and the engine host; returns when the console answers."""
        self.supervision.start_programs(AFTER_TABLES)
        self._until(self._web_answers, "web")

    def stop(self) -> bool:
        """Stop every process, the servers last, then the engines; false if nothing was begun."""
        return self._lock is not None and leftovers.end(self.supervision.folder)

    def _claim(self) -> None:
        """One demo at a time in this folder: another would end the processes of the first."""
        path = self.supervision.folder / "running"
        self._lock = locks.held(path)
        if self._lock is None:
            raise OptionsError(
                f"A demo runs in this folder already, as process {path.read_text() or 'unknown'}. "
                "Stop it with Ctrl-C first, or set CONSORT_VAR to another folder for a second one."
            )
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def router_token(self, router: str) -> str:
        """What the router asks for on its admin port; made once, kept in a file of mode 0600."""
        return self._secret(f"{router}.token")

    def _secret(self, name: str) -> str:
        path = self.supervision.folder / name
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(32))
        return path.read_text().strip()

    def _web_answers(self) -> bool:
        try:
            return httpx.get(f"{self.options.web_url}/healthz", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False

    def _until(self, condition: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                log = self.supervision.folder / f"{name}.log"
                raise InstallationError(
                    f"{name} did not come up within {START_TIMEOUT_SECONDS:.0f} s; see {log}."
                )
            time.sleep(0.1)
