"""ResourceSlices: whole devices in order, newest generation, complete pools, odd shapes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery.slices import Published, by_node, quantity, read_slices
from tests.inventory.discovery.cluster_objects import device, resource_slice


def read(*slices: Any) -> list[Published]:
    return read_slices(by_node(slices).get("gpu-1", []))


def test_devices_come_with_serial_model_and_memory_in_the_order_of_their_numbers() -> None:
    (found,) = read(resource_slice(count=11))

    assert [each.serial for each in found.devices] == [f"GPU-{number}" for number in range(11)]
    assert [each.slot for each in found.devices] == list(range(11))
    first = found.devices[0]
    assert (first.name, first.memory_total_mib) == ("NVIDIA H100 80GB HBM3", 81559)
    assert first.utilisation is None


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    (found,) = read(resource_slice(count=8), resource_slice(count=7, generation=2))

    assert len(found.devices) == 7


def test_a_pool_of_which_a_slice_is_missing_does_not_say_how_many_devices_there_are() -> None:
    (found,) = read(resource_slice(count=4, slices=2))

    assert (found.unread, found.devices) == ("incomplete", ())


def test_a_pool_in_two_slices_is_read_as_one() -> None:
    (found,) = read(
        resource_slice(slices=2, devices=[device(0), device(1)]),
        resource_slice(slices=2, devices=[device(2)]),
    )

    assert len(found.devices) == 3


def test_slices_of_a_device_and_passed_through_ones_are_no_devices() -> None:
    (found,) = read(
        resource_slice(devices=[device(0), device(1, type="mig"), device(2, type="vfio")])
    )

    assert ([each.serial for each in found.devices], found.partitions) == (
        ["GPU-0"], ("mig", "vfio"),
    )  # fmt: skip


def test_a_device_the_driver_taints_or_calls_unhealthy_is_not_healthy() -> None:
    tainted = device(0) | {"taints": [{"key": "xid", "effect": "NoExecute"}]}
    (found,) = read(resource_slice(devices=[tainted, device(1, healthy=False), device(2)]))

    assert [each.health for each in found.devices] == ["degraded", "failed", "healthy"]
    assert found.tainted == 1


def test_the_older_form_with_basic_and_qualified_names_is_read() -> None:
    old = device(0)
    basic = {
        "attributes": {f"gpu.nvidia.com/{key}": value for key, value in old["attributes"].items()},
        "capacity": old["capacity"],
    }
    (found,) = read(resource_slice(devices=[{"name": "gpu-0", "basic": basic}]))

    assert (found.devices[0].serial, found.devices[0].memory_total_mib) == ("GPU-0", 81559)


@pytest.mark.parametrize(
    ("devices", "unread"),
    [
        pytest.param([device(0), device(0)], "shape", id="a-name-twice"),
        pytest.param([{"attributes": {}}], "shape", id="no-name"),
        pytest.param([device(number) for number in range(257)], "too-many", id="too-many"),
    ],
)
def test_devices_that_cannot_be_told_apart_do_not_count(devices: Any, unread: str) -> None:
    (found,) = read(resource_slice(devices=devices))

    assert (found.unread, found.devices) == (unread, ())


def test_slices_without_a_node_or_a_driver_are_left_out() -> None:
    nowhere, nobody = resource_slice(), resource_slice()
    del nowhere["spec"]["nodeName"]
    del nobody["spec"]["driver"]

    assert by_node([nowhere, nobody, "x", None, {}]) == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("8", 8), (8, 8), ("80Gi", 80 * 2**30), ("1.5Gi", 3 * 2**29), ("2k", 2000), ("0", 0),
        ("-1", None), ("1e3", None), ("eight", None), (None, None), (True, None), ("", None),
        ("٣", None), (-1, None), ([], None), ("9" * 30, None),
    ],
)  # fmt: skip
def test_a_quantity_is_a_whole_number_or_unknown(value: Any, expected: int | None) -> None:
    assert quantity(value) == expected


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.lists(anything, max_size=4), anything, anything)
def test_whatever_a_server_answers_is_read_without_an_error(
    devices: list[Any], pool: Any, attributes: Any
) -> None:
    odd = resource_slice(devices=[*devices, {"name": "a", "attributes": attributes}])
    odd["spec"]["pool"] = pool

    (found,) = read(odd)

    assert len(found.devices) <= 256
