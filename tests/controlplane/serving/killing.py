"""The loop of a pool in a process of its own, killed at a call that a test names."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from urllib.parse import quote

from django.db import connection, connections

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Pool, Wave
from tests.controlplane.serving.boundary import Boundary, nobody
from tests.controlplane.serving.processes import PROJECT


def database_url() -> str:
    settings = connection.settings_dict
    password = f":{quote(settings['PASSWORD'])}" if settings["PASSWORD"] else ""
    host, port = settings["HOST"], f"&port={settings['PORT']}" if settings["PORT"] else ""
    user = f"{quote(settings['USER'])}{password}"
    return f"postgresql://{user}@/{settings['NAME']}?host={quote(host)}{port}"


class Worker:
    """The loop of a pool in a process of its own."""

    def __init__(self, pool: Pool, environment: Mapping[str, str]) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.controlplane.serving.loop_process", str(pool.pk)],
            cwd=PROJECT,
            env=os.environ
            | {
                "DATABASE_URL": database_url(), "BROKER_URL": "redis://127.0.0.1:1",
                "DEBUG": "true", "SERVING_LEASE_SECONDS": "2", "LOG_LEVEL": "ERROR",
            }
            | environment,
        )  # fmt: skip

    def kill(self) -> None:
        os.kill(self.child.pid, signal.SIGKILL)


class KillAt:
    """Kills a worker when the plan's wave is at a step and a call passes one of the boundaries.

    `call` is a regular expression over method and path. Whoever calls after that gets no answer,
    until `end`.
    """

    def __init__(
        self, plan: ChangePlan, step: str, call: str, when: str, *boundaries: Boundary
    ) -> None:
        self._plan, self._at, self._call, self._when = plan, step, call, when
        self._boundaries = boundaries
        self.calls: list[str] = []
        """The call at which it died; empty while it lives."""
        for boundary in boundaries:
            boundary.watch = self._watch

    def run(self, worker: Worker) -> int:
        """Wait until the worker ends; its exit code."""
        self._worker = worker
        try:
            return worker.child.wait(60)
        finally:
            for boundary in self._boundaries:
                boundary.watch = nobody

    def _watch(self, method: str, path: str, when: str) -> bool:
        try:
            wave = Wave.objects.get(plan=self._plan)
        finally:
            connections.close_all()
        if self.calls:
            return True
        is_call = re.search(self._call, f"{method} {path}") is not None and when == self._when
        if is_call and (wave.step, wave.state) == (self._at, Wave.State.RUNNING):
            self.calls.append(path)
            self._worker.kill()
        return bool(self.calls)


def finish(plan: ChangePlan, *, seconds: float = 60) -> ChangePlan:
    """Run the loop here until the plan ends."""
    deadline = time.monotonic() + seconds
    while plan.state == ChangePlan.State.APPLYING and time.monotonic() < deadline:
        if not services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=1.0):
            time.sleep(0.1)  # the dead worker's lease has not run out
        plan.refresh_from_db()
    return plan
