"""Ends what a demo left running: its processes, and engines, which outlive the engine host."""

import subprocess
import sys
from pathlib import Path

from controlplane.config.embedded.places import PROJECT
from deploy.demo import supervision

TIMEOUT_SECONDS = 60


def end(folder: Path) -> bool:
    """Stop supervisord with every process it runs, then the engines; false if none ran.

    `folder` is where the demo keeps its files.
    """
    stopped = supervision.stop_survivor(folder)
    engines = folder / "engine-host"
    if engines.exists():
        subprocess.run(
            [sys.executable, "-m", "controlplane.serving.enginehost", "--state-dir", str(engines),
             "--grace-seconds", "2", "--end-engines"],
            cwd=PROJECT, check=False, timeout=TIMEOUT_SECONDS, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return stopped
