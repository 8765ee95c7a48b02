"""Facts that ship with the product, each with its source; no I/O beyond these files."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent


@cache
def load(name: str) -> dict[str, Any]:
    """Content of `<name>.yaml` in this folder; read once, so treat it as constant."""
    content: dict[str, Any] = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text("utf-8"))
    return content
