"""Compares what was meant with what was found on a node; pure, so that properties can be tested.

Devices are matched in three passes: the same serial; then the same slot where nobody wrote down a
serial; what is left over differs. A device matched by its serial keeps its readings even if it sits
in another slot, because the serial says which device it is.

A cluster says less than an agent. Where it lists devices without places, they are matched by serial
and else by order, and nothing has moved. Where it only counts, nothing is said about a single
device: the numbers are compared, and no serial differs.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inventory.discovery.base import FoundNode
from inventory.vendors.base import FoundAccelerator

ABOUT_THE_NODE = -1
"""Slot of a difference that concerns the node as such."""
_LOOK: Mapping[str, Any] = {"do": "look-at-the-node"}
"""There is nothing to take over: somebody has to look."""


@dataclass(frozen=True, slots=True)
class IntendedAccelerator:
    """A live accelerator as it was planned."""

    key: Any
    slot: int
    serial: str
    """Empty: nobody wrote it down."""
    model: str
    """Slug of the accelerator model."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Intended and observed, and what accepting the observed would do."""

    kind: str
    slot: int
    intended: str
    observed: str
    suggestion: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every intended device is in exactly one of `matched`, `missing` and `unsaid`."""

    matched: Mapping[Any, FoundAccelerator]
    """By the key of the intended device."""
    missing: tuple[Any, ...]
    differences: tuple[Difference, ...]
    unsaid: tuple[Any, ...] = ()
    """Devices that this look says nothing about, each by itself."""
    all_usable: bool = False
    """True if as many as intended are given out, though nobody says which is which."""


def compare(
    *,
    vendor: str,
    intended: Sequence[IntendedAccelerator],
    found: FoundNode,
    model_of: Callable[[str], str | None],
    is_cordoned: bool = False,
) -> Comparison:
    """Match devices and list the differences, ordered by slot and kind.

    `model_of` gives the slug of a model by the name that the vendor's tool prints, or None. A node
    that reports another vendor matches nothing: its slots mean other devices. `is_cordoned`: that
    the cluster places nothing there is as it was meant.
    """
    about = [
        Difference(doubt.kind, ABOUT_THE_NODE, doubt.expected, doubt.observed, _LOOK)
        for doubt in found.doubts
        if not (doubt.kind == "cordoned-in-cluster" and is_cordoned)
    ]
    keys = tuple(device.key for device in intended)
    if found.state == "gone":
        return Comparison({}, (), _sorted(about), unsaid=keys)
    if not found.vendor:
        nothing = Difference(
            "nothing-found", ABOUT_THE_NODE, f"{len(intended)} x {vendor}", _others(found), _LOOK
        )
        return Comparison({}, (), _sorted([*about, nothing]), unsaid=keys)
    if found.vendor != vendor:
        other = Difference("vendor-differs", ABOUT_THE_NODE, vendor, found.vendor, _LOOK)
        return Comparison({}, keys, _sorted([*about, other]))
    if not found.names_devices or _speaks_of_other_serials(intended, found):
        return _counted(intended, found, model_of, about)
    matched, left_intended, left_found = _match(intended, found)
    about += _usable(found, len(intended))
    differences = [
        *about,
        *_of_matched(intended, matched, model_of, has_slots=found.has_slots),
        *_of_left_over(left_intended, left_found, model_of),
    ]
    return Comparison(matched, tuple(device.key for device in left_intended), _sorted(differences))


def _counted(
    intended: Sequence[IntendedAccelerator],
    found: FoundNode,
    model_of: Callable[[str], str | None],
    about: list[Difference],
) -> Comparison:
    """Numbers against numbers; which device is which is not said."""
    planned = len(intended)
    if found.names_devices:
        serials = ", ".join(device.serial for device in found.accelerators[:2])
        about.append(
            Difference("other-serials", ABOUT_THE_NODE, "", f"{serials}, ..."[:200], _LOOK)
        )
    if found.count is not None and found.count != planned:
        kind = "fewer-devices" if found.count < planned else "more-devices"
        about.append(Difference(kind, ABOUT_THE_NODE, str(planned), str(found.count), _LOOK))
    about += _usable(found, planned)
    model, models = model_of(found.model), sorted({device.model for device in intended})
    if model is not None and models and model not in models:
        about.append(Difference("model-differs", ABOUT_THE_NODE, ", ".join(models), model, _LOOK))
    all_usable = bool(planned) and found.usable is not None and found.usable >= planned
    keys = tuple(device.key for device in intended)
    return Comparison({}, (), _sorted(about), unsaid=keys, all_usable=all_usable)


def _usable(found: FoundNode, planned: int) -> list[Difference]:
    """Fewer are given out than there are: the device plugin, or the driver, holds some back."""
    there = planned if found.count is None else min(found.count, planned)
    if found.usable is None or found.usable >= there:
        return []
    return [Difference("not-usable", ABOUT_THE_NODE, str(there), str(found.usable), _LOOK)]


def _speaks_of_other_serials(intended: Sequence[IntendedAccelerator], found: FoundNode) -> bool:
    """True if a driver writes serials of another kind than the agent, such as UUIDs.

    So many devices are never replaced at once that not one is left; of a single device nobody can
    tell.
    """
    planned = {device.serial for device in intended if device.serial}
    seen = {device.serial for device in found.accelerators if device.serial}
    is_cluster = found.source == "kubernetes"
    return is_cluster and min(len(planned), len(seen)) > 1 and not planned & seen


def _others(found: FoundNode) -> str:
    named = [fact.place for fact in found.facts if fact.name == "other"]
    return ", ".join(named)[:200]


def _sorted(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """In order, each kind once per slot: the first of a kind is the one that counts."""
    first: dict[tuple[int, str], Difference] = {}
    for each in differences:
        first.setdefault((each.slot, each.kind), each)
    return tuple(first[key] for key in sorted(first))


def _match(
    intended: Sequence[IntendedAccelerator], seen: FoundNode
) -> tuple[dict[Any, FoundAccelerator], list[IntendedAccelerator], list[FoundAccelerator]]:
    found = seen.accelerators
    by_serial = {device.serial: device for device in found if device.serial}
    matched = {
        device.key: by_serial[device.serial]
        for device in intended
        if device.serial and device.serial in by_serial
    }
    used = {device.slot for device in matched.values()}
    by_slot = {device.slot: device for device in found if device.slot not in used}
    if not seen.has_slots:
        by_slot = _in_order(intended, matched, by_slot)
    for device in intended:
        there = by_slot.get(device.slot)
        if device.key in matched or there is None or (device.serial and there.serial):
            continue
        matched[device.key] = there
        del by_slot[device.slot]
    left = [device for device in intended if device.key not in matched]
    return matched, left, list(by_slot.values())


def _in_order(
    intended: Sequence[IntendedAccelerator],
    matched: Mapping[Any, FoundAccelerator],
    left: Mapping[int, FoundAccelerator],
) -> dict[int, FoundAccelerator]:
    """Devices without a place, put into the slots that are left; beyond those into free ones."""
    taken = {each.slot for each in intended}
    slots = sorted(each.slot for each in intended if each.key not in matched)
    free = (slot for slot in itertools.count() if slot not in taken)
    devices = [left[slot] for slot in sorted(left)]
    places = itertools.chain(slots, free)
    return {slot: replace(device, slot=slot) for device, slot in zip(devices, places, strict=False)}


def _of_matched(
    intended: Sequence[IntendedAccelerator],
    matched: Mapping[Any, FoundAccelerator],
    model_of: Callable[[str], str | None],
    *,
    has_slots: bool = True,
) -> list[Difference]:
    differences = []
    for device in intended:
        found = matched.get(device.key)
        if found is None:
            continue
        if has_slots and found.slot != device.slot:
            move = {"do": "move-accelerator", "serial": device.serial, "slot": found.slot}
            differences.append(
                Difference("moved", device.slot, str(device.slot), str(found.slot), move)
            )
        if found.serial and not device.serial:
            write = {"do": "write-serial", "slot": device.slot, "serial": found.serial}
            differences.append(Difference("serial-known", device.slot, "", found.serial, write))
        model = model_of(found.name)
        if model is not None and model != device.model:
            change = _replacement(device.slot, found, model)
            differences.append(
                Difference("model-differs", device.slot, device.model, model, change)
            )
    return differences


def _of_left_over(
    intended: Sequence[IntendedAccelerator],
    found: Sequence[FoundAccelerator],
    model_of: Callable[[str], str | None],
) -> list[Difference]:
    by_slot = {device.slot: device for device in found}
    differences = []
    for device in intended:
        other = by_slot.pop(device.slot, None)
        if other is None:
            retire = {"do": "retire-accelerator", "slot": device.slot}
            differences.append(
                Difference("missing", device.slot, device.serial or device.model, "", retire)
            )
        else:
            replace = _replacement(device.slot, other, model_of(other.name) or device.model)
            differences.append(
                Difference("serial-differs", device.slot, device.serial, other.serial, replace)
            )
    for slot, extra in by_slot.items():
        add = _replacement(slot, extra, model_of(extra.name)) | {"do": "add-accelerator"}
        differences.append(Difference("extra", slot, "", extra.serial or extra.name, add))
    return differences


def _replacement(slot: int, found: FoundAccelerator, model: str | None) -> dict[str, Any]:
    return {"do": "replace-accelerator", "slot": slot, "serial": found.serial, "model": model}
