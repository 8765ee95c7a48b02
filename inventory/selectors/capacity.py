"""The four capacity counts: delivered ⊇ healthy, reserved ⊇ active, for accelerators and nodes.

What is reserved and active is known by `serving`, so the caller hands in the ids. Nesting holds by
construction: only delivered devices are counted at all, and active ones only if they are reserved.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.utils import timezone

from controlplane.common import permissions
from inventory.freshness import is_stale
from inventory.models import Accelerator, Node
from inventory.models.words import Health

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

_PATHS = {
    "site": "node__cluster__site__slug",
    "cluster": "node__cluster__slug",
    "vendor": "vendor",
    "model": "model__slug",
}
GROUPS = (*_PATHS, "role")


@dataclass(slots=True)
class Counts:
    """Numbers of devices or of nodes. healthy + degraded + failed + unknown = delivered."""

    delivered: int = 0
    healthy: int = 0
    degraded: int = 0
    failed: int = 0
    unknown: int = 0
    reserved: int = 0
    active: int = 0
    reserved_not_healthy: int = 0
    healthy_not_reserved: int = 0

    def add(self, *, health: str, reserved: bool, active: bool) -> None:
        """Count one more; `active` without `reserved` is not counted as active."""
        self.delivered += 1
        setattr(self, health, getattr(self, health) + 1)
        self.reserved += reserved
        self.active += reserved and active
        self.reserved_not_healthy += reserved and health != Health.HEALTHY
        self.healthy_not_reserved += not reserved and health == Health.HEALTHY


@dataclass(frozen=True, slots=True)
class CapacityGroup:
    """Counts of one group, such as {"site": "kr-seo-1", "vendor": "amd"}."""

    key: Mapping[str, str]
    accelerators: Counts
    nodes: Counts
    oldest_observation: datetime | None
    """Age of what the counts rest on; None if a device of the group was never observed."""


@dataclass(frozen=True, slots=True)
class _Device:
    key: tuple[str, ...]
    node: UUID
    health: str
    reserved: bool
    active: bool
    observed_at: datetime | None


def capacity(
    user: "User",
    *,
    group_by: Sequence[str] = ("vendor",),
    reserved: Collection[UUID] = (),
    active: Collection[UUID] = (),
    roles: Mapping[UUID, str] | None = None,
    now: datetime | None = None,
) -> list[CapacityGroup]:
    """Counts by group, sorted by key; one query.

    `group_by` names parts of GROUPS; `reserved` and `active` are ids of accelerators; `roles` gives
    the open role by accelerator id, "" where there is none. A node belongs to every group that one
    of its devices is in; it is reserved if one of them is, and as healthy as the worst of them.
    """
    rows = permissions.restrict(Accelerator.objects.all(), user, "inventory.view_accelerator")
    names = [name for name in group_by if name != "role"]
    found = (
        rows.exclude(state=Accelerator.State.RETIRED)
        .exclude(node__state__in=Node.NOT_DELIVERED)
        .order_by()
        .values("pk", "node_id", "health", "observed_at", *(_PATHS[name] for name in names))
    )
    moment = now or timezone.now()
    devices = [
        _Device(
            key=tuple(
                (roles or {}).get(row["pk"], "") if name == "role" else row[_PATHS[name]]
                for name in group_by
            ),
            node=row["node_id"],
            health=Health.UNKNOWN if is_stale(row["observed_at"], now=moment) else row["health"],
            reserved=row["pk"] in reserved,
            active=row["pk"] in active,
            observed_at=row["observed_at"],
        )
        for row in found
    ]
    return _groups(devices, group_by)


def _groups(devices: Iterable[_Device], group_by: Sequence[str]) -> list[CapacityGroup]:
    by_key: dict[tuple[str, ...], list[_Device]] = defaultdict(list)
    for device in devices:
        by_key[device.key].append(device)
    return [
        CapacityGroup(
            key=dict(zip(group_by, key, strict=True)),
            accelerators=_counts(members),
            nodes=_counts(_as_nodes(members)),
            oldest_observation=_oldest(members),
        )
        for key, members in sorted(by_key.items())
    ]


def _counts(devices: Iterable[_Device]) -> Counts:
    counts = Counts()
    for device in devices:
        counts.add(health=device.health, reserved=device.reserved, active=device.active)
    return counts


def _as_nodes(devices: Iterable[_Device]) -> Iterable[_Device]:
    by_node: dict[UUID, list[_Device]] = defaultdict(list)
    for device in devices:
        by_node[device.node].append(device)
    for node, members in by_node.items():
        yield _Device(
            key=(),
            node=node,
            health=_node_health({device.health for device in members}),
            reserved=any(device.reserved for device in members),
            active=any(device.reserved and device.active for device in members),
            observed_at=None,
        )


def _node_health(states: set[str]) -> str:
    """Healthy or failed if all are; unknown if anything is unknown; else degraded."""
    if len(states) == 1:
        return states.pop()
    return Health.UNKNOWN if Health.UNKNOWN in states else Health.DEGRADED


def _oldest(devices: Sequence[_Device]) -> datetime | None:
    times: list[Any] = [device.observed_at for device in devices]
    return None if None in times else min(times)
