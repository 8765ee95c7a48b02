"""The node agent's report: how it is written, and how a received one is checked.

Form: {"hostname", "vendor", "seen_at" (RFC 3339), "tool", "accelerators": [{"slot", "serial",
"name", "memory_total_mib", "memory_used_mib", "utilisation" (0 to 1), "power_watts",
"temperature_celsius", "health"}]}, and where folders were counted "folders": [{"path",
"size_bytes", "files", "sha256", "seconds", "error"}]. A figure the tool did not give is null.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from inventory.discovery.base import DiscoveryError, FoundFolder, FoundNode
from inventory.vendors.base import FoundAccelerator

MOST_ACCELERATORS = 256
MOST_FOLDERS = 64
MOST_BYTES = 2**60
_SHA256 = re.compile(r"[0-9a-f]{64}|")
_HEALTH = ("healthy", "degraded", "failed")
_FIELDS = {field.name for field in fields(FoundAccelerator)}
_FOLDER_FIELDS = {field.name for field in fields(FoundFolder)}
_MOST = {
    "memory_total_mib": 2**31 - 1,
    "memory_used_mib": 2**31 - 1,
    "utilisation": 1,
    "power_watts": 100_000,
    "temperature_celsius": 1000,
}


def write_report(found: FoundNode) -> dict[str, Any]:
    """The report as JSON-ready values; `read_report` gives the same node back."""
    report: dict[str, Any] = {
        "hostname": found.hostname,
        "vendor": found.vendor,
        "seen_at": found.seen_at.astimezone(UTC).isoformat(),
        "tool": found.tool,
        "accelerators": [asdict(accelerator) for accelerator in found.accelerators],
    }
    if found.folders:
        report["folders"] = [asdict(folder) for folder in found.folders]
    return report


def read_report(report: Any) -> FoundNode:
    """Check a received report. Raises DiscoveryError that names the member."""
    if not isinstance(report, Mapping):
        raise DiscoveryError("the report is not an object.")
    unknown = set(report) - {"hostname", "vendor", "seen_at", "tool", "accelerators", "folders"}
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
        folders=_folders(report.get("folders", [])),
    )


def _folders(values: Any) -> tuple[FoundFolder, ...]:
    if not isinstance(values, list) or len(values) > MOST_FOLDERS:
        raise DiscoveryError(f"folders is not a list of at most {MOST_FOLDERS} folders.")
    found = tuple(_folder(f"folders[{index}]", value) for index, value in enumerate(values))
    _each_once("folder", [folder.path for folder in found])
    return found


def _folder(place: str, value: Any) -> FoundFolder:
    if not isinstance(value, Mapping) or set(value) - _FOLDER_FIELDS:
        raise DiscoveryError(f"{place} is not an object with members of {sorted(_FOLDER_FIELDS)}.")
    path = _text(value, "path", most=500, place=f"{place}.path")
    sha256 = _text(value, "sha256", most=64, place=f"{place}.sha256", is_required=False)
    if not path.startswith("/") or not _SHA256.fullmatch(sha256):
        raise DiscoveryError(f"{place} has no absolute path, or no SHA-256 of 64 hex digits.")
    sizes = {name: _count(value.get(name), f"{place}.{name}") for name in ("size_bytes", "files")}
    seconds = value.get("seconds")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 <= seconds <= MOST_BYTES):
        raise DiscoveryError(f"{place}.seconds is not a number from 0, or null.")
    return FoundFolder(
        path=path,
        sha256=sha256,
        seconds=seconds,
        error=_text(value, "error", most=500, place=f"{place}.error", is_required=False),
        **sizes,
    )


def _count(value: Any, place: str) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (is_whole and 0 <= value <= MOST_BYTES):
        raise DiscoveryError(f"{place} is not a whole number from 0, or null.")
    return value


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
