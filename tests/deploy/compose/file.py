"""The Compose file, with its variables filled in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "compose"
GIVEN = {"CONSORT_REGISTRY": "registry.example", "CONSORT_HOSTS": "consort.example"}
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::([-?])([^}]*))?\}")

Service = dict[str, Any]


class MissingVariableError(Exception):
    """A variable that must be given is not; the message is the file's own."""


def filled(variables: Mapping[str, str] = GIVEN) -> dict[str, Any]:
    """The file as Compose reads it: `${NAME:-default}` and `${NAME:?message}` filled in."""

    def value(match: re.Match[str]) -> str:
        name, kind, text = match.groups()
        if variables.get(name):
            return variables[name]
        if kind == "?":
            raise MissingVariableError(text)
        return text or ""

    def walk(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: walk(inner) for key, inner in part.items()}
        if isinstance(part, list):
            return [walk(inner) for inner in part]
        return _VARIABLE.sub(value, part) if isinstance(part, str) else part

    found: dict[str, Any] = walk(yaml.safe_load((FOLDER / "compose.yaml").read_text()))
    return found


def services() -> dict[str, Service]:
    """Services by name."""
    found: dict[str, Service] = filled()["services"]
    return found
