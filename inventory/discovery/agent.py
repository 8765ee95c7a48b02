"""The node agent's report: how it is written, and how a received one is checked.

Form: {"hostname", "vendor", "seen_at" (RFC 3339), "tool", "accelerators": [{"slot", "serial",
"name", "memory_total_mib", "memory_used_mib", "utilisation" (0 to 1), "power_watts",
"temperature_celsius", "health"}]}. A figure the tool did not give is null.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from inventory.discovery.base import DiscoveryError, FoundNode
from inventory.vendors.base import FoundAccelerator

MOST_ACCELERATORS = 256
_HEALTH = ("healthy", "degraded", "failed")
_FIELDS = {field.name for field in fields(FoundAccelerator)}
_MOST = {
    "memory_total_mib": 2**31 - 1,
    "memory_used_mib": 2**31 - 1,
    "utilisation": 1,
    "power_watts": 100_000,
    "temperature_celsius": 1000,
}


def write_report(found: FoundNode) -> dict[str, Any]:
    """The report as JSON-ready values; `read_report` gives the same node back."""
    return {
        "hostname": found.hostname,
        "vendor": found.vendor,
        "seen_at": found.seen_at.astimezone(UTC).isoformat(),
        "tool": found.tool,
        "accelerators": [asdict(accelerator) for accelerator in found.accelerators],
    }


def read_report(report: Any) -> FoundNode:
    """Check a received report. Raises DiscoveryError that names the member."""
    if not isinstance(report, Mapping):
        raise DiscoveryError("the report is not an object.")
    unknown = set(report) - {"hostname", "vendor", "seen_at", "tool", "accelerators"}
    if unknown:
        raise DiscoveryError(f"unknown members: {', '.join(sorted(map(str, unknown)))}.")
    devices = report.get("accelerators")
    if not isinstance(devices, list) or len(devices) > MOST_ACCELERATORS:
        raise DiscoveryError(f"accelerators is not a list of at most {MOST_ACCELERATORS} devices.")
    found = tuple(_accelerator(index, device) for index, device in enumerate(devices))
    _each_once("slot", [accelerator.slot for accelerator in found])
    _each_once("serial", [device.serial for device in found if device.serial])
    return FoundNode(
        hostname=_text(report, "hostname", most=253, place="hostname"),
        vendor=_text(report, "vendor", most=50, place="vendor"),
        source="agent",
        seen_at=_time(report.get("seen_at")),
        accelerators=found,
        tool=str(report.get("tool") or "")[:500],
    )


def _accelerator(index: int, device: Any) -> FoundAccelerator:
    place = f"accelerators[{index}]"
    if not isinstance(device, Mapping) or set(device) - _FIELDS:
        raise DiscoveryError(f"{place} is not an object with members of {sorted(_FIELDS)}.")
    slot = device.get("slot")
    if not isinstance(slot, int) or isinstance(slot, bool) or not 0 <= slot < MOST_ACCELERATORS:
        raise DiscoveryError(f"{place}.slot is not a whole number from 0 to 255.")
    health = device.get("health", "healthy")
    if health not in _HEALTH:
        raise DiscoveryError(f"{place}.health is not one of {', '.join(_HEALTH)}.")
    readings = {name: _reading(device.get(name), name, place) for name in _MOST}
    return FoundAccelerator(
        slot=slot,
        serial=_text(device, "serial", most=128, place=f"{place}.serial", is_required=False),
        name=_text(device, "name", most=100, place=f"{place}.name", is_required=False),
        health=health,
        memory_total_mib=_whole(readings["memory_total_mib"]),
        memory_used_mib=_whole(readings["memory_used_mib"]),
        utilisation=readings["utilisation"],
        power_watts=readings["power_watts"],
        temperature_celsius=readings["temperature_celsius"],
    )


def _reading(value: Any, name: str, place: str) -> float | None:
    if value is None:
        return None
    least = -273 if name == "temperature_celsius" else 0
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise DiscoveryError(f"{place}.{name} is not a number or null.")
    if not least <= value <= _MOST[name]:
        raise DiscoveryError(f"{place}.{name} is not between {least} and {_MOST[name]}.")
    return value


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _text(
    values: Mapping[str, Any], name: str, *, most: int, place: str, is_required: bool = True
) -> str:
    text = values.get(name, "")
    if not isinstance(text, str) or len(text) > most or "\x00" in text:
        raise DiscoveryError(f"{place} is not a text of at most {most} characters.")
    if is_required and not text.strip():
        raise DiscoveryError(f"{place} is missing.")
    return text.strip()


def _time(value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise DiscoveryError("seen_at is not a time like 2026-11-30T09:00:00Z.") from error
    if time.tzinfo is None:
        raise DiscoveryError("seen_at has no time zone; end it with Z or an offset.")
    return time.astimezone(UTC)


def _each_once(what: str, values: list[Any]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise DiscoveryError(f"the {what} {twice[0]} is there twice.")
