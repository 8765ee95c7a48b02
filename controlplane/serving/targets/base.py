"""What every target offers: put an engine there, see it, end it, read its output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

SeenState = Literal["absent", "starting", "running", "ending", "exited", "failed", "unknown"]


class TargetUnavailableError(Exception):
    """The target did not answer in time; nothing is known about what it runs."""


class TargetRefusedError(Exception):
    """The target answered with no; `fenced` when a newer holder acts on the engine."""

    def __init__(self, message: str, *, fenced: bool = False) -> None:
        super().__init__(message)
        self.fenced = fenced


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEngine:
    """An engine as it should be."""

    name: str
    generation: int
    spec_hash: str
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    """Address of an engine that somebody else runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEngine:
    """An engine as it was seen."""

    name: str
    state: SeenState
    spec_hash: str | None = None
    asked_spec_hash: str | None = None
    """What the target was asked for last, also while it does not run."""
    generation: int | None = None
    pid: int | None = None
    url: str | None = None
    instance: str | None = None
    """Changes with each start of the process."""
    starts: int = 0
    """Starts of what was asked for; above 1 it ended by itself."""
    exit_code: int | None = None
    exited_at: float | None = None
    """Unix time in seconds."""
    failure: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON column."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a target can do; a plan shows the rest before approval."""

    starts_engines: bool
    sentence: str

    def limits(self, workload: str) -> list[str]:
        """Sentences about what the target cannot do for a workload."""
        return [] if self.starts_engines else [f"{workload}: {self.sentence}"]


class Target(Protocol):
    """A place to run engines. Each method returns within seconds."""

    slug: str

    def apply(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """Start or replace; the same spec again changes nothing while it runs.

        Raises TargetUnavailableError or TargetRefusedError.
        """

    def observe(self, engines: Sequence[WantedEngine]) -> dict[str, SeenEngine]:
        """What is true of each engine, by name. Raises TargetUnavailableError."""

    def delete(self, name: str, *, fencing_token: int) -> None:
        """End it; an engine that is not known is ended already."""

    def logs(self, name: str, *, size: int) -> str:
        """Last bytes of its output, or a sentence when the target has none."""

    def capabilities(self) -> Capabilities:
        """What this target can do."""
