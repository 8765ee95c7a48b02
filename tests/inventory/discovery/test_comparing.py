"""Intended against observed: examples of each difference, and what holds for all of them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery.base import FoundNode
from inventory.discovery.comparing import IntendedAccelerator, compare
from inventory.vendors.base import FoundAccelerator

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
MODELS = {"MI325X": "amd-mi325x", "MI300X": "amd-mi300x"}


def found(*devices: FoundAccelerator, vendor: str = "amd") -> FoundNode:
    return FoundNode("gpu-1", vendor, "agent", NOW, devices)


def device(slot: int, serial: str, name: str = "MI325X") -> FoundAccelerator:
    return FoundAccelerator(slot=slot, serial=serial, name=name)


def planned(slot: int, serial: str, model: str = "amd-mi325x") -> IntendedAccelerator:
    return IntendedAccelerator(key=f"row-{slot}", slot=slot, serial=serial, model=model)


def differences(intended: list[IntendedAccelerator], seen: FoundNode) -> list[Any]:
    result = compare(vendor="amd", intended=intended, found=seen, model_of=MODELS.get)
    return [
        (d.kind, d.slot, d.intended, d.observed, d.suggestion["do"]) for d in result.differences
    ]


@pytest.mark.parametrize(
    ("intended", "seen", "expected"),
    [
        pytest.param([planned(0, "A")], [device(0, "A")], [], id="as-planned"),
        pytest.param(
            [planned(0, "")], [device(0, "A")], [("serial-known", 0, "", "A", "write-serial")],
            id="serial-nobody-wrote-down",
        ),
        pytest.param([planned(0, "A")], [device(0, "")], [], id="tool-without-serials"),
        pytest.param(
            [planned(0, "A"), planned(1, "B")], [device(0, "B"), device(1, "A")],
            [
                ("moved", 0, "0", "1", "move-accelerator"),
                ("moved", 1, "1", "0", "move-accelerator"),
            ],
            id="two-changed-places",
        ),
        pytest.param(
            [planned(0, "A")], [device(0, "Z")],
            [("serial-differs", 0, "A", "Z", "replace-accelerator")], id="another-device",
        ),
        pytest.param(
            [planned(0, "A"), planned(1, "B")], [device(0, "A")],
            [("missing", 1, "B", "", "retire-accelerator")], id="missing",
        ),
        pytest.param(
            [planned(0, "A")], [device(0, "A"), device(1, "B")],
            [("extra", 1, "", "B", "add-accelerator")], id="extra",
        ),
        pytest.param(
            [planned(0, "A")], [device(0, "A", "MI300X")],
            [("model-differs", 0, "amd-mi325x", "amd-mi300x", "replace-accelerator")],
            id="another-model",
        ),
        pytest.param([planned(0, "A")], [device(0, "A", "MI999")], [], id="name-nobody-knows"),
    ],
)  # fmt: skip
def test_differences(
    intended: list[IntendedAccelerator], seen: list[FoundAccelerator], expected: list[Any]
) -> None:
    assert differences(intended, found(*seen)) == expected


def test_another_vendor_is_one_difference_and_everything_is_missing() -> None:
    seen = found(device(0, "A"), vendor="nvidia")

    result = compare(vendor="amd", intended=[planned(0, "A")], found=seen, model_of=MODELS.get)

    assert [each.kind for each in result.differences] == ["vendor-differs"]
    assert result.missing == ("row-0",)


slots = st.integers(0, 7)
serials = st.sampled_from(["", "A", "B", "C", "D"])


def unique(devices: list[Any]) -> list[Any]:
    """Slots and serials once each, as both sides guarantee."""
    seen_slots: set[int] = set()
    seen_serials: set[str] = set()
    kept = []
    for each in devices:
        if each.slot in seen_slots or (each.serial and each.serial in seen_serials):
            continue
        seen_slots.add(each.slot)
        seen_serials.add(each.serial)
        kept.append(each)
    return kept


@given(
    st.lists(st.builds(planned, slots, serials), max_size=8).map(unique),
    st.lists(st.builds(device, slots, serials), max_size=8).map(unique),
)
def test_every_planned_device_is_matched_or_missing_and_none_is_used_twice(
    intended: list[IntendedAccelerator], seen: list[FoundAccelerator]
) -> None:
    result = compare(vendor="amd", intended=intended, found=found(*seen), model_of=MODELS.get)

    assert {*result.matched, *result.missing} == {each.key for each in intended}
    assert set(result.matched).isdisjoint(result.missing)
    used = [each.slot for each in result.matched.values()]
    assert len(used) == len(set(used))
    assert len({(each.slot, each.kind) for each in result.differences}) == len(result.differences)


@given(st.lists(st.builds(planned, slots, st.sampled_from("ABCD")), max_size=4).map(unique))
def test_what_is_as_planned_makes_no_difference(intended: list[IntendedAccelerator]) -> None:
    seen = found(*(device(each.slot, each.serial) for each in intended))

    assert differences(intended, seen) == []
