"""Devices out of ResourceSlices (resource.k8s.io v1, and v1beta1 with its `basic`); plain data.

A pool may be published in several slices and in a newer generation: only the newest counts, and a
pool of which a slice is missing says nothing about how many devices there are. Sources of the
attributes: deviceinfo.go of the drivers of NVIDIA (`type`, `uuid`, `productName`; capacity
`memory`) and AMD (`type`, `productName`), node_state.go of Intel's Gaudi driver (`model`, `serial`,
`healthy`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from inventory.vendors.base import FoundAccelerator

MOST_DEVICES = 256
_WHOLE_TYPES = ("", "gpu", "amdgpu")
"""Other words of `type` stand for slices of a device, or for the same device given to a VM."""
_SERIALS = ("uuid", "serial")
_MODELS = ("productName", "model")
_STOPPING = ("NoSchedule", "NoExecute")
_MIB = 2**20
_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Published:
    """What one driver publishes about the devices of one node."""

    driver: str
    places: tuple[str, ...]
    """Its pools, for people who wonder."""
    devices: tuple[FoundAccelerator, ...]
    """Whole devices in the order of their names; empty if the pool is not complete."""
    partitions: tuple[str, ...]
    """Kinds of slices that it publishes beside or instead of whole devices."""
    tainted: int
    """Whole devices that the driver keeps from new claims."""
    unread: str = ""
    """Why the devices do not count, as a code: incomplete, too-many or shape."""


def by_node(slices: Iterable[Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Slices by the name of their node; those of no single node are left out."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in slices:
        spec = mapping(mapping(each).get("spec"))
        name = spec.get("nodeName")
        if isinstance(name, str) and name and isinstance(spec.get("driver"), str):
            found.setdefault(name, []).append(spec)
    return found


def read_slices(specs: Sequence[Mapping[str, Any]]) -> list[Published]:
    """What each driver publishes, by the driver's name."""
    by_driver: dict[str, list[Mapping[str, Any]]] = {}
    for spec in specs:
        by_driver.setdefault(spec["driver"], []).append(spec)
    return [_published(driver, by_driver[driver]) for driver in sorted(by_driver)]


def quantity(value: Any) -> int | None:
    """A Kubernetes quantity as a whole number ("8", "80Gi", 8); None if it cannot be read.

    What is left of a fraction is cut off; negative numbers and exponents are not read, since no
    count and no memory is written so.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return int(Decimal(match[1]) * _UNITS[match[2]]) if match else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, or nothing if it is no object: a server may answer anything."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value, or nothing if it is no list."""
    return value if isinstance(value, list | tuple) else ()


def text(value: Any, *, most: int = 200) -> str:
    """The value as a text without control characters, cut; empty if it is none."""
    if not isinstance(value, str):
        return ""
    return "".join(sign for sign in value[:most] if sign.isprintable()).strip()


def _published(driver: str, specs: Sequence[Mapping[str, Any]]) -> Published:
    pools: dict[str, list[Mapping[str, Any]]] = {}
    for spec in specs:
        pools.setdefault(text(mapping(spec.get("pool")).get("name")), []).append(spec)
    raw: list[Any] = []
    unread = ""
    for _name, members in sorted(pools.items()):
        newest = _newest(members)
        if not _is_complete(newest):
            unread = "incomplete"
        for spec in newest:
            raw += sequence(spec.get("devices"))
    if len(raw) > MOST_DEVICES:
        raw, unread = raw[:MOST_DEVICES], "too-many"
    devices = [mapping(each) for each in raw]
    names = [text(each.get("name")) for each in devices]
    if not all(names) or len(set(names)) != len(names):
        unread = unread or "shape"
    whole = sorted((each for each in devices if _is_whole(each)), key=_natural)
    return Published(
        driver=text(driver),
        places=tuple(sorted(pools)),
        devices=() if unread else tuple(_device(slot, each) for slot, each in enumerate(whole)),
        partitions=tuple(sorted({_type(each) for each in devices if not _is_whole(each)})),
        tainted=sum(_is_tainted(each) for each in whole),
        unread=unread,
    )


def _newest(specs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    last = max(_generation(spec) for spec in specs)
    return [spec for spec in specs if _generation(spec) == last]


def _generation(spec: Mapping[str, Any]) -> int:
    return quantity(mapping(spec.get("pool")).get("generation")) or 0


def _is_complete(specs: Sequence[Mapping[str, Any]]) -> bool:
    wanted = quantity(mapping(specs[0].get("pool")).get("resourceSliceCount"))
    return wanted is None or wanted == len(specs)


def _device(slot: int, device: Mapping[str, Any]) -> FoundAccelerator:
    memory = quantity(mapping(_part(device, "capacity").get("memory")).get("value"))
    return FoundAccelerator(
        slot=slot,
        serial=_first(device, _SERIALS)[:128],
        name=_first(device, _MODELS)[:100],
        memory_total_mib=None if memory is None else min(memory // _MIB, 2**31 - 1),
        health=_health(device),
    )


def _health(device: Mapping[str, Any]) -> str:
    if _attribute(device, "healthy") is False:
        return "failed"
    return "degraded" if _is_tainted(device) else "healthy"


def _is_tainted(device: Mapping[str, Any]) -> bool:
    taints = sequence(device.get("taints") or mapping(device.get("basic")).get("taints"))
    return any(mapping(taint).get("effect") in _STOPPING for taint in taints)


def _is_whole(device: Mapping[str, Any]) -> bool:
    return _type(device) in _WHOLE_TYPES


def _type(device: Mapping[str, Any]) -> str:
    return text(_attribute(device, "type"))


def _first(device: Mapping[str, Any], names: Sequence[str]) -> str:
    found = (text(_attribute(device, name)) for name in names)
    return next((each for each in found if each), "")


def _attribute(device: Mapping[str, Any], name: str) -> Any:
    """The attribute's value whatever its type; its name may carry the driver's domain."""
    for key, value in _part(device, "attributes").items():
        if isinstance(key, str) and key.rpartition("/")[2] == name:
            return next(iter(mapping(value).values()), None)
    return None


def _part(device: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return mapping(device.get(name) or mapping(device.get("basic")).get(name))


def _natural(device: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Key that puts gpu-2 before gpu-10."""
    parts = _DIGITS.split(text(device.get("name")))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
