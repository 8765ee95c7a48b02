"""What the exact index keeps per publisher of cache events."""

from dataclasses import dataclass, field

from routing.core.block_copies import BlockCopies
from routing.core.block_masks import DEVICE, HOST, PLANES, REMOTE
from routing.core.compact_map import CompactMap
from routing.core.kv_events import CREDITED_KINDS, Stored, is_device
from routing.core.rechunking import Pages
from routing.core.waiting_events import WaitingEvents

MAX_MEDIA = 8


@dataclass(slots=True)
class Counts:
    """What a publisher's events were, since it was opened."""

    stored_blocks: int = 0
    removed_blocks: int = 0
    cleared: int = 0
    unknown_parents: int = 0
    """Blocks whose parent was not known when they came."""
    given_up: int = 0
    """Of these, blocks whose parent did not come in time."""
    unknown_removals: int = 0
    misshaped: int = 0
    """Events whose tokens do not fit their blocks."""
    uncredited: int = 0
    """Blocks of caches that say nothing about prefixes."""
    disagreements: int = 0
    """Hashes that another publisher uses for another block."""


@dataclass(slots=True, eq=False)
class Publisher:
    """One instance's side of the index."""

    slot: int
    names: CompactMap
    """From the engine's hash to the key of the block."""
    counts: Counts = field(default_factory=Counts)
    blocks: int = 0
    """Blocks of the router's size that it holds in any memory."""
    planes: dict[str, int] = field(default_factory=dict)
    """Media other than the device's, with their plane."""
    group: int | None = None
    """The group of layers that is followed, where there are several."""
    other_groups: set[int] = field(default_factory=set)
    waiting: WaitingEvents = field(default_factory=WaitingEvents)
    pages: dict[str | None, Pages] = field(default_factory=dict)
    """Pages per medium, where the engine's blocks have another size."""
    engine_block_tokens: int | None = None
    copies: BlockCopies = field(default_factory=BlockCopies)

    bits: int = field(init=False)
    """Those of all its memories."""
    device_bit: int = field(init=False)

    def __post_init__(self) -> None:
        self.bits = 0b1110 << PLANES * self.slot
        self.device_bit = 1 << PLANES * self.slot + DEVICE

    def bit(self, medium: str | None) -> int:
        """The bit of one memory."""
        return 1 << PLANES * self.slot + self.plane(medium)

    def plane(self, medium: str | None) -> int:
        """The first other medium is the next fastest: engines offload to host memory first."""
        if medium is None or is_device(medium):
            return DEVICE
        plane = self.planes.get(medium)
        if plane is None:
            plane = HOST if not self.planes else REMOTE
            if len(self.planes) < MAX_MEDIA:
                self.planes[medium] = plane
        return plane

    def credits(self, event: Stored) -> bool:
        """Of several groups of layers one is followed, whose blocks have the order of prefixes."""
        group = event.group_idx
        if event.kv_cache_spec_kind not in CREDITED_KINDS:
            if group is not None:
                self.other_groups.add(group)
            return False
        if group is None:
            return True
        if self.group is None:
            self.group = group
        if group != self.group:
            self.other_groups.add(group)
        return group == self.group
