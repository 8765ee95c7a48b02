"""Workloads that have a name: those of published benchmarks, packaged traces, and our own mixes."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("catalogue.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One named workload."""

    id: str
    about: str
    """A sentence."""
    source: str
    """Where its numbers are from."""
    confidence: str
    """`measured` (as it was run), `claimed`, `recorded` (a trace), or `chosen` (by us)."""
    fields: dict[str, Any]
    """As `building.build` reads them."""


def ids() -> tuple[str, ...]:
    """All of them, in the catalogue's order."""
    return tuple(_load())


def entry(name: str) -> Entry | None:
    """By its id; `None` when nothing is called so."""
    return _load().get(name)


@lru_cache(maxsize=1)
def _load() -> dict[str, Entry]:
    # Loading YAML costs more than the rest of a small command.
    import yaml

    with _FILE.open("rb") as file:
        tree: dict[str, dict[str, Any]] = yaml.safe_load(file)
    sources = tree.pop("sources")
    return {
        name: Entry(
            id=name,
            about=fields.pop("about"),
            source=str(sources[fields.pop("source")]),
            confidence=fields.pop("confidence"),
            fields=fields,
        )
        for name, fields in tree.items()
    }
