"""The report of a bounded demo, read from the REST API as anybody could."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

WAIT_SECONDS = 30.0
POLL_SECONDS = 0.5


@dataclass
class Run:
    """What the traffic of this run was."""

    project: str
    started: datetime
    pool: str
    clients: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Reports of the load generator by policy (and `quiet`)."""


def make_report(run: Run, *, url: str, token: str) -> tuple[dict[str, Any], list[str]]:
    return {}, ["report not there"]


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(report))
