"""Compares what was meant with what was found on a node; pure, so that properties can be tested.

Devices are matched in three passes: the same serial; then the same slot where nobody wrote down a
serial; what is left over differs. A device matched by its serial keeps its readings even if it sits
in another slot, because the serial says which device it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inventory.discovery.base import FoundNode
from inventory.vendors.base import FoundAccelerator

ABOUT_THE_NODE = -1
"""Slot of a difference that concerns the node as such."""


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
    """Every intended device is in exactly one of `matched` and `missing`."""

    matched: Mapping[Any, FoundAccelerator]
    """By the key of the intended device."""
    missing: tuple[Any, ...]
    differences: tuple[Difference, ...]


def compare(
    *,
    vendor: str,
    intended: Sequence[IntendedAccelerator],
    found: FoundNode,
    model_of: Callable[[str], str | None],
) -> Comparison:
    """Match devices and list the differences, ordered by slot and kind.

    `model_of` gives the slug of a model by the name that the vendor's tool prints, or None. A node
    that reports another vendor matches nothing: its slots mean other devices.
    """
    if found.vendor != vendor:
        other = Difference(
            "vendor-differs", ABOUT_THE_NODE, vendor, found.vendor, {"do": "look-at-the-node"}
        )
        return Comparison({}, tuple(device.key for device in intended), (other,))
    matched, left_intended, left_found = _match(intended, found.accelerators)
    differences = [
        *_of_matched(intended, matched, model_of),
        *_of_left_over(left_intended, left_found, model_of),
    ]
    return Comparison(
        matched=matched,
        missing=tuple(device.key for device in left_intended),
        differences=tuple(sorted(differences, key=lambda each: (each.slot, each.kind))),
    )


def _match(
    intended: Sequence[IntendedAccelerator], found: Sequence[FoundAccelerator]
) -> tuple[dict[Any, FoundAccelerator], list[IntendedAccelerator], list[FoundAccelerator]]:
    by_serial = {device.serial: device for device in found if device.serial}
    matched = {
        device.key: by_serial[device.serial]
        for device in intended
        if device.serial and device.serial in by_serial
    }
    used = {device.slot for device in matched.values()}
    by_slot = {device.slot: device for device in found if device.slot not in used}
    for device in intended:
        there = by_slot.get(device.slot)
        if device.key in matched or there is None or (device.serial and there.serial):
            continue
        matched[device.key] = there
        del by_slot[device.slot]
    left = [device for device in intended if device.key not in matched]
    return matched, left, list(by_slot.values())


def _of_matched(
    intended: Sequence[IntendedAccelerator],
    matched: Mapping[Any, FoundAccelerator],
    model_of: Callable[[str], str | None],
) -> list[Difference]:
    differences = []
    for device in intended:
        found = matched.get(device.key)
        if found is None:
            continue
        if found.slot != device.slot:
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
