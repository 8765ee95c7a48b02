"""The shape of what a discovery found."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from inventory.vendors.base import FoundAccelerator

NodeState = Literal["ready", "not-ready", "lost", "gone", "unknown"]


class DiscoveryError(Exception):
    """What was found cannot be read; the message says where and what is allowed."""


@dataclass(frozen=True, slots=True)
class FoundFact:
    """One thing that one source says about a node; what another source says stays beside it."""

    name: str
    """count, usable, model, memory_mib, partition, shared, ready, cordoned, taint, other, or
    unread: the source was there and could not be understood."""
    value: str | int
    source: str
    """resource-slice, extended-resource, label or node-object."""
    place: str
    """Where exactly: the resource, the label, the driver with its pool."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is remarkable about a node whatever was planned; becomes a finding about the node."""

    kind: str
    expected: str
    observed: str


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """A folder of files on a node, as its agent counted it; None where it could not."""

    path: str
    size_bytes: int | None = None
    files: int | None = None
    sha256: str = ""
    seconds: float | None = None
    """Time that it took to read all of it."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class FoundNode:
    """One look at one node."""

    hostname: str
    vendor: str
    """Slug of a vendor file; empty if the source names no accelerator that a vendor file knows."""
    source: str
    """agent, file or kubernetes."""
    seen_at: datetime
    """Aware, in UTC."""
    accelerators: tuple[FoundAccelerator, ...]
    tool: str = ""
    """Command that was run, for people who wonder."""
    count: int | None = None
    """Whole devices, where the source says how many and not which. None: it said nothing."""
    usable: int | None = None
    """How many of them are given out at present. None: it said nothing."""
    model: str = ""
    """Name of the devices' model as the best source prints it; empty if none does."""
    memory_mib: int | None = None
    """Of each device."""
    has_slots: bool = True
    """False: the slots are an order and no places, so nothing can have moved."""
    state: NodeState = "ready"
    """What the cluster says of the node itself; an agent that reports is ready."""
    facts: tuple[FoundFact, ...] = field(default=())
    doubts: tuple[Doubt, ...] = field(default=())
    folders: tuple[FoundFolder, ...] = field(default=())
    """Folders that the agent was asked to count."""

    @property
    def names_devices(self) -> bool:
        """True if the devices were listed one by one; an agent always does."""
        return self.source != "kubernetes" or bool(self.accelerators)
