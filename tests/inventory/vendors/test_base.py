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
