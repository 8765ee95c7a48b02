"""Traffic of the demo: the same requests under two policies, then a quiet mix of tenants."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controlplane.config.embedded.places import PROJECT
from deploy.demo.options import Options

COMPARISON_RATE = 30.0
"""Requests per second: what two cores serve with room to spare."""
COMPARISON_REQUESTS = 600
SEED = 7
MODEL = "granite-4.1-8b"


@dataclass(frozen=True)
class Load:
    """One run of the load generator. Shapes follow the published three-vendor benchmark."""

    key: str
    rate: float
    requests: int | None = None
    duration: float | None = None
    groups: int = 150
    prompts_per_group: int = 5
    system_tokens: int = 6000
    question_tokens: int = 1200
    output_tokens: int = 150
    seed: int = SEED


def comparison(key: str) -> Load:
    """The same requests at the same times for every policy."""
    return Load(key=key, rate=COMPARISON_RATE, requests=COMPARISON_REQUESTS)


def quiet(key: str, *, rate: float, seconds: float, seed: int) -> Load:
    """Traffic that goes on while a person looks around."""
    base = Load(key=key, rate=rate, duration=seconds, seed=seed)
    return replace(base, groups=24, system_tokens=2000, question_tokens=400)


class Traffic:
    """One load generator process; ends by itself."""

    def __init__(self, options: Options, load: Load, report: Path) -> None:
        self.report = report
        report.unlink(missing_ok=True)
        log = report.with_suffix(".log").open("wb")
        self._process = subprocess.Popen(
            _command(options, load, report), cwd=PROJECT, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        log.close()

    def is_running(self) -> bool:
        """True until the last answer came or the time was over."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it now."""
        if self.is_running():
            self._process.terminate()
            self._process.wait(timeout=10)

    def result(self) -> Mapping[str, Any]:
        """What the clients saw. Raises TrafficError if the generator did not finish."""
        self._process.wait(timeout=400)
        if not self.report.exists():
            log = self.report.with_suffix(".log").read_text(errors="replace").strip()
            raise TrafficError(f"The load generator failed: {log.splitlines()[-1:] or 'no output'}")
        result: Mapping[str, Any] = json.loads(self.report.read_text())
        return result


class TrafficError(Exception):
    """The load generator did not deliver a result."""


def _command(options: Options, load: Load, report: Path) -> list[str]:
    command = [sys.executable, "-m", "routing.testbed.load", "--model", MODEL, "--api", "chat"]
    for url in options.router_urls:
        command += ["--url", url]
    command += [
        "--key", load.key, "--rate", str(load.rate), "--groups", str(load.groups),
        "--prompts-per-group", str(load.prompts_per_group),
        "--system-tokens", str(load.system_tokens), "--question-tokens", str(load.question_tokens),
        "--output-tokens", str(load.output_tokens), "--seed", str(load.seed),
        "--timeout", "120", "--report", str(report),
    ]  # fmt: skip
    if load.requests is not None:
        command += ["--requests", str(load.requests)]
    if load.duration is not None:
        command += ["--duration", str(load.duration)]
    return command
