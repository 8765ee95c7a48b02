"""The shape of what a discovery found."""

from dataclasses import dataclass
from datetime import datetime

from inventory.vendors.base import FoundAccelerator


class DiscoveryError(Exception):
    """What was found cannot be read; the message says where and what is allowed."""


@dataclass(frozen=True, slots=True)
class FoundNode:
    """One look at one node."""

    hostname: str
    vendor: str
    source: str
    """agent, file or kubernetes."""
    seen_at: datetime
    """Aware, in UTC."""
    accelerators: tuple[FoundAccelerator, ...]
    tool: str = ""
    """Command that was run, for people who wonder."""
