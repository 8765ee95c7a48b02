"""Clients of the models during a test."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.stack import MODEL, ROOT, Demo, until


class Traffic:
    """Requests through both routers for as long as the block runs, at most ten minutes."""

    def __init__(self, demo: Demo, report: Path, *, rate: float = 4.0) -> None:
        self._report = report
        self._command = [
            sys.executable, "-m", "routing.testbed.load", "--quiet", "--key", demo.key,
            "--model", MODEL, "--rate", str(rate), "--duration", "600", "--groups", "12",
            "--prompts-per-group", "3", "--system-tokens", "1500", "--question-tokens", "200",
            "--output-tokens", "60", "--timeout", "60", "--report", str(report),
        ]  # fmt: skip
        for url in demo.routers.values():
            self._command += ["--url", url]
        self._demo = demo
        self.result: dict[str, Any] = {}

    def __enter__(self) -> Self:
        before = self._requests()
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.DEVNULL)
        until(lambda: self._requests() >= before + 4, seconds=30, what="the first requests")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=90)
        self.result = json.loads(self._report.read_text())

    def _requests(self) -> int:
        return sum(
            self._demo.router_state(name)["requests"]["total"] for name in self._demo.routers
        )
