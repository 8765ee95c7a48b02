"""Reading quantities, and what holds for every vendor file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.facts import loading
from inventory.vendors import vendors
from inventory.vendors.base import VendorError, label_facts, mebibytes, number, quantity, share

ALL = pytest.mark.parametrize("slug", list(vendors()))


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        pytest.param("81559 MiB", "", 81559, id="mebibytes"),
        pytest.param("81559", "mib", 81559, id="unit-from-the-caller"),
        pytest.param("256G", "", 262144, id="amd-label"),
        pytest.param("65536 MB", "", 62500, id="decimal-megabytes"),
        pytest.param("68702699520", "b", 65520, id="bytes"),
        pytest.param("1048576 KiB", "", 1024, id="kibibytes"),
        pytest.param("0 MiB", "", 0, id="zero-is-zero"),
        pytest.param("[N/A]", "mib", None, id="not-available"),
        pytest.param("", "mib", None, id="absent"),
    ],
)
def test_mebibytes(text: str, unit: str, expected: int | None) -> None:
    assert mebibytes(text, unit=unit) == expected


@pytest.mark.parametrize("text", ["12", "12 parsecs", "-4 MiB", "GiB", "1 2 MiB"])
def test_an_amount_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(VendorError):
        mebibytes(text)


def test_a_number_in_another_unit_is_refused() -> None:
    assert number("38.00 W", unit="W") == 38.0
    with pytest.raises(VendorError, match="'kW'"):
        number("38 kW", unit="W")


@given(st.floats(0, 100))
def test_a_percentage_becomes_a_share(percent: float) -> None:
    found = share(f"{percent:f} %")

    assert found is not None
    assert 0 <= found <= 1


@given(st.text())
def test_a_quantity_is_read_or_refused(text: str) -> None:
    try:
        found = quantity(text)
    except VendorError:
        return

    assert found is None or isinstance(found[0], float)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text()))
def test_labels_never_raise(labels: dict[str, str]) -> None:
    found = label_facts(labels, model="a", memory="b", memory_unit="mib", count="c")

    assert found.count is None or found.count >= 0


@ALL
@given(output=st.text())
def test_any_output_is_read_or_refused(slug: str, output: str) -> None:
    try:
        found = vendors()[slug].parse(output)
    except VendorError:
        return

    assert found == [] or all(accelerator.slot >= 0 for accelerator in found)


@ALL
def test_the_file_and_the_facts_agree_on_names(slug: str) -> None:
    facts = loading.vendors()[slug]

    assert set(vendors()[slug].resource_names) <= {name for name, _what in facts.resources}
    assert vendors()[slug].name == facts.name


@ALL
def test_the_probe_is_a_list_of_arguments(slug: str) -> None:
    command = vendors()[slug].probe_command

    assert all(isinstance(argument, str) and argument for argument in command)


@ALL
def test_a_vendor_without_a_command_says_what_to_do(slug: str) -> None:
    vendor = vendors()[slug]
    if vendor.probe_command:
        return

    with pytest.raises(VendorError, match=f"No tool of {vendor.name} is read.*import file"):
        vendor.parse("anything")


@ALL
def test_a_cluster_can_give_out_the_vendors_devices_somehow(slug: str) -> None:
    facts = loading.vendors()[slug]

    assert vendors()[slug].resource_names or facts.device_classes


def test_labels_of_a_vendor_known_by_name_are_read_in_their_unit() -> None:
    labels = {"enflame.com/gcu.model": "T10", "enflame.com/gcu.memory": "16384",
              "enflame.com/gcu.count": "8"}  # fmt: skip

    found = vendors()["enflame"].read_labels(labels)

    assert (found.model, found.count) == ("T10", 8)
    assert found.memory_mib == 16384 * 10**6 // 2**20
