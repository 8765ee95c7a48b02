"""Intended against what a cluster says: numbers, devices without places, and the node itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery.base import Doubt, FoundFact, FoundNode
from inventory.discovery.comparing import Comparison, IntendedAccelerator, compare
from inventory.vendors.base import FoundAccelerator
from tests.inventory.discovery.test_comparing import MODELS, NOW, device, planned, unique


def seen(*devices: FoundAccelerator, **parts: Any) -> FoundNode:
    values = {"has_slots": False, "count": len(devices) or None, "vendor": "amd"} | parts
    return FoundNode(
        hostname="gpu-1", source="kubernetes", seen_at=NOW, accelerators=devices, **values
    )


def against(found: FoundNode, *intended: IntendedAccelerator, **parts: Any) -> Comparison:
    return compare(vendor="amd", intended=intended, found=found, model_of=MODELS.get, **parts)


def told(result: Comparison) -> list[tuple[str, int, str, str]]:
    return [(each.kind, each.slot, each.intended, each.observed) for each in result.differences]


PAIR = (planned(0, "A"), planned(1, "B"))


def test_a_count_that_fits_makes_no_difference_and_says_nothing_of_single_devices() -> None:
    result = against(seen(count=2, usable=2, model="MI325X"), *PAIR)

    assert (told(result), result.matched, result.missing) == ([], {}, ())
    assert (result.unsaid, result.all_usable) == (("row-0", "row-1"), True)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"count": 1, "usable": 1}, ("fewer-devices", -1, "2", "1"), id="fewer"),
        pytest.param({"count": 3, "usable": 3}, ("more-devices", -1, "2", "3"), id="more"),
        pytest.param({"count": 2, "usable": 1}, ("not-usable", -1, "2", "1"), id="held-back"),
        pytest.param({"count": None, "usable": 0}, ("not-usable", -1, "2", "0"), id="plugin-away"),
        pytest.param(
            {"count": 2, "usable": 2, "model": "MI300X"},
            ("model-differs", -1, "amd-mi325x", "amd-mi300x"), id="model",
        ),
    ],
)  # fmt: skip
def test_numbers_are_compared_with_numbers(
    parts: dict[str, Any], expected: tuple[str, int, str, str]
) -> None:
    assert told(against(seen(**parts), *PAIR)) == [expected]


def test_devices_with_serials_are_merged_by_serial_and_nothing_has_moved() -> None:
    result = against(seen(device(0, "B"), device(1, "A")), *PAIR)

    assert told(result) == []
    assert {key: found.serial for key, found in result.matched.items()} == {
        "row-0": "A", "row-1": "B",
    }  # fmt: skip


def test_devices_without_serials_fill_the_slots_in_order() -> None:
    result = against(seen(device(0, ""), device(1, "")), planned(4, "A"), planned(2, "B"))

    assert (told(result), sorted(result.matched)) == ([], ["row-2", "row-4"])


def test_an_extra_device_gets_a_slot_that_nobody_has() -> None:
    result = against(seen(device(0, "B"), device(1, "A"), device(2, "C")), *PAIR)

    assert told(result) == [("extra", 2, "", "C")]


def test_one_device_replaced_is_one_difference() -> None:
    result = against(seen(device(0, "Z"), device(1, "B")), *PAIR)

    assert told(result) == [("serial-differs", 0, "A", "Z")]


def test_serials_of_another_kind_are_one_finding_and_the_numbers_count() -> None:
    result = against(seen(device(0, "GPU-1"), device(1, "GPU-2"), usable=2), *PAIR)

    assert told(result) == [("other-serials", -1, "", "GPU-1, GPU-2, ...")]
    assert (result.missing, result.all_usable) == ((), True)


def test_a_vendor_that_nobody_names_is_nothing_found_and_not_missing() -> None:
    other = FoundFact("other", 4, "extended-resource", "acme.example/tpu")
    result = against(seen(vendor="", facts=(other,)), *PAIR)

    assert told(result) == [("nothing-found", -1, "2 x amd", "acme.example/tpu")]
    assert (result.missing, len(result.unsaid)) == ((), 2)


def test_of_a_node_that_is_gone_nothing_else_is_said() -> None:
    gone = seen(vendor="", state="gone", doubts=(Doubt("node-gone", "", ""),))

    result = against(gone, *PAIR)

    assert (told(result), len(result.unsaid)) == ([("node-gone", -1, "", "")], 2)


def test_a_cordon_in_the_cluster_is_remarkable_unless_it_was_meant() -> None:
    found = seen(count=2, doubts=(Doubt("cordoned-in-cluster", "", "spec.unschedulable"),))

    assert [kind for kind, *_ in told(against(found, *PAIR))] == ["cordoned-in-cluster"]
    assert told(against(found, *PAIR, is_cordoned=True)) == []


serials = st.sampled_from(["", "A", "B", "C", "D"])


@given(
    st.lists(st.builds(planned, st.integers(0, 7), serials), max_size=8).map(unique),
    st.lists(st.builds(device, st.integers(0, 7), serials), max_size=8).map(unique),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(0, 9),
)
def test_every_planned_device_is_matched_missing_or_unsaid_and_kinds_are_there_once(
    intended: list[IntendedAccelerator],
    devices: list[FoundAccelerator],
    count: int | None,
    usable: int | None,
) -> None:
    result = against(seen(*devices, count=count, usable=usable), *intended)

    keys = [*result.matched, *result.missing, *result.unsaid]
    assert sorted(keys) == sorted(each.key for each in intended)
    assert len(told(result)) == len({(kind, slot) for kind, slot, *_ in told(result)})
    assert "moved" not in {kind for kind, *_ in told(result)}
    if not devices:
        assert "serial-differs" not in {kind for kind, *_ in told(result)}
