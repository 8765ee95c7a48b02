"""What rows make of a look: readings, health, and the finding about a node nobody planned."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from controlplane.operations import outbox
from inventory.discovery.base import FoundNode
from inventory.discovery.comparing import ABOUT_THE_NODE, Difference, IntendedAccelerator
from inventory.discovery.health import HEALTHY, Verdict, worse
from inventory.facts import names
from inventory.models import Accelerator, Finding, Node
from inventory.models.words import Health, HealthReason
from inventory.vendors.base import FoundAccelerator

READINGS = (
    "observed_at",
    "observed_name",
    "observed_memory_total_mib",
    "observed_memory_used_mib",
    "observed_utilisation",
    "observed_power_watts",
    "observed_temperature_celsius",
)
HEALTH = ("health", "health_reason", "health_since")


def unknown_node(found: FoundNode) -> Difference:
    """A node that nobody planned, with what accepting it would add.

    The model is None where the source names none that is known, or several; the number of
    accelerators is None where no source counts them.
    """
    devices = found.accelerators
    named = {device.name for device in devices} or {found.model}
    models = {names.model_named(found.vendor, name) for name in named}
    count = len(devices) if found.names_devices else found.count
    suggestion = {
        "do": "create-node",
        "hostname": found.hostname,
        "vendor": found.vendor,
        "model": models.pop() if len(models) == 1 else None,
        "accelerators": count,
        "serials": [device.serial for device in sorted(devices, key=_slot)],
    }
    observed = found.vendor if count is None else f"{count} x {found.vendor}"
    return Difference(Finding.Kind.UNKNOWN_NODE, ABOUT_THE_NODE, "", observed, suggestion)


def _slot(device: FoundAccelerator) -> int:
    return device.slot


def model_of(vendor: str) -> Callable[[str], str | None]:
    """Slug of a model by the name that the vendor's tools print."""
    return partial(names.model_named, vendor)


def intended(live: Iterable[Accelerator]) -> list[IntendedAccelerator]:
    """Live accelerators as they were planned, with their models joined."""
    return [IntendedAccelerator(row.pk, row.slot, row.serial, row.model.slug) for row in live]


def readings(found: FoundAccelerator, seen_at: datetime) -> Mapping[str, Any]:
    return {
        "observed_at": seen_at,
        "observed_name": found.name,
        "observed_memory_total_mib": found.memory_total_mib,
        "observed_memory_used_mib": found.memory_used_mib,
        "observed_utilisation": found.utilisation,
        "observed_power_watts": found.power_watts,
        "observed_temperature_celsius": found.temperature_celsius,
    }


def reason_of(found: FoundAccelerator) -> HealthReason:
    return HealthReason.NONE if found.health == Health.HEALTHY else HealthReason.VENDOR_REPORT


def devices_view(live: Sequence[Accelerator]) -> Verdict:
    """Health of a node out of its devices' own; without devices nothing is wrong with them."""
    states = {accelerator.health for accelerator in live}
    if not live or states == {Health.HEALTHY}:
        return HEALTHY
    reasons = {accelerator.health_reason for accelerator in live}
    reason = (
        HealthReason.ACCELERATOR_MISSING
        if HealthReason.MISSING in reasons
        else HealthReason.ACCELERATOR_FAILED
    )
    return (Health.FAILED if states == {Health.FAILED} else Health.DEGRADED, reason)


def set_node_health(node: Node, *, seen_at: datetime, views: Sequence[Verdict]) -> str:
    """Set the worse of the views; returns the health before if it changed, else an empty text.

    `observed_at` never goes back. The caller saves the row and tells of the change.
    """
    was = node.health
    health, reason = worse(*views)
    set_health(node, Health(health), HealthReason(reason), seen_at)
    node.observed_at = max(node.observed_at or seen_at, seen_at)
    return was if node.health != was else ""


def tell_health(changed: Iterable[tuple[Node, str]]) -> None:
    """An event for each node whose health is another one than before."""
    outbox.emit_each(
        (_health_event(node), node, {"was": was, "reason": node.health_reason})
        for node, was in changed
        if was
    )


def _health_event(node: Node) -> str:
    return f"consort.node.{'recovered' if node.health == Health.HEALTHY else node.health}"


def set_health(
    row: Node | Accelerator, health: Health, reason: HealthReason, seen_at: datetime
) -> None:
    """`health_since` moves only when health or its reason does."""
    if (row.health, row.health_reason) != (health, reason):
        row.health, row.health_reason, row.health_since = health, reason, seen_at
