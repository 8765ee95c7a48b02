"""Where Envoy is on this machine."""

import shutil
from pathlib import Path

OWN = Path(__file__).resolve().parents[2] / ".venv-envoy" / "bin" / "envoy"
"""Made by `make envoy`, in an environment of its own."""


def find(own: Path = OWN) -> str | None:
    """The program of the search path, else our own; `None` where there is neither."""
    return shutil.which("envoy") or (str(own) if own.exists() else None)
