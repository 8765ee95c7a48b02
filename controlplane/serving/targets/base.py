"""What every target offers: put an engine there, see it, end it, read its output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from controlplane.serving.artefacts import Sight
from controlplane.serving.conditions import Status

SeenState = Literal["absent", "starting", "running", "ending", "exited", "failed", "unknown"]


class TargetUnavailableError(Exception):
    """The target did not answer in time; nothing is known about what it runs."""


class TargetRefusedError(Exception):
    """The target answered with no; `fenced` when a newer holder acts on the engine.

    `reason` is one word for the condition, in the target's own spelling where it has one.
    """

    def __init__(self, message: str, *, reason: str = "Refused", fenced: bool = False) -> None:
        super().__init__(message)
        self.reason, self.fenced = reason, fenced


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
    cluster: str = ""
    """Id of the cluster in which it runs."""
    pool: str = ""
    """Short name of its pool."""
    manifests: tuple[Mapping[str, Any], ...] = ()
    """Objects that make up the engine, for a target that takes objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCondition:
    """One fact that a target saw of an engine; reason and message in the target's own words."""

    type: str
    status: Status
    reason: str = ""
    message: str = ""


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
    conditions: tuple[SeenCondition, ...] = ()
    """What the target says of it beside its state; kept among the engine's conditions."""
    has_drifted: bool = False
    """Somebody changed what was asked for; asking again might put it right."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON column, without the conditions, which have their own."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "conditions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFiles:
    """Files of a model as they should be on a node."""

    artefact: str
    """Short name; with the node's it names the work."""
    node: str
    hostname: str
    cluster: str = ""
    """Id of the cluster that the node belongs to."""
    namespace: str = ""
    kind: str
    """pvc, node-path, oci or s3."""
    uri: str
    endpoint: str = ""
    folder: str = ""
    """Absolute folder on the node; empty where there is none."""
    sha256: str = ""
    """Empty: nobody stated it."""
    image: str = ""
    """Image whose Python counts and copies, for a target that runs containers."""
    secret: str = ""
    """Name of the secret with the keys of an object store; empty: it asks for none."""
    seconds: float = 7200.0
    """Longest time for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFiles:
    """Files of a model as a target saw them."""

    sight: Sight
    size_bytes: int | None = None
    sha256: str = ""
    read_bytes_per_second: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a target can do; a plan shows the rest before approval."""

    starts_engines: bool
    sentence: str
    restarts_engines: bool = False
    """An engine that ended is started again by the place itself."""
    fetches: frozenset[str] = frozenset()
    """Kinds of sources that `prefetch` brings to a node."""
    checks: frozenset[str] = frozenset()
    """Kinds of sources whose files `prefetch` counts where they are."""

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

    def delete(self, engine: WantedEngine, *, fencing_token: int) -> None:
        """End it; an engine that is not known is ended already.

        Raises TargetUnavailableError or TargetRefusedError.
        """

    def logs(self, engine: WantedEngine, *, size: int) -> str:
        """Last bytes of its output, or a sentence when the target has none.

        Raises TargetUnavailableError or TargetRefusedError.
        """

    def prefetch(self, files: Sequence[WantedFiles]) -> dict[str, SeenFiles]:
        """Bring files to nodes and count them; what is seen so far, by `node`.

        Returns within seconds, and is called again until all is there. The same files a second time
        start nothing new. Only for kinds that the capabilities name. Raises TargetUnavailableError
        or TargetRefusedError.
        """

    def capabilities(self) -> Capabilities:
        """What this target can do."""
