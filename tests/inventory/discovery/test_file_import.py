"""The import file: every mistake has its row, its column and its sentence."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.discovery.file_import import MOST_ROWS, ImportFile, read_file

HEADER = "site,country,cluster,cluster_kind,hostname,vendor,model,accelerators,serials"
GOOD = "kr-1,KR,seoul-1,static,gpu-1,amd,amd-mi325x,2,A;B"


def read(*rows: str, header: str = HEADER) -> ImportFile:
    return read_file("\n".join([header, *rows]).encode())


def first_error(found: ImportFile) -> tuple[int, str, str]:
    error = found.errors[0]
    return error.row, error.column, error.code


def test_a_row_is_a_node() -> None:
    (row,) = read(GOOD).rows

    assert (row.site, row.cluster, row.hostname, row.vendor) == ("kr-1", "seoul-1", "gpu-1", "amd")
    assert (row.accelerators, row.serials, row.state) == (2, ("A", "B"), "ready")
    assert row.new_site["country"] == row.new_site["jurisdiction"] == "KR"
    assert row.new_cluster == {"name": "", "kind": "static"}


def test_columns_come_in_any_order_with_a_byte_order_mark_and_blank_lines() -> None:
    text = "\ufeffaccelerators,model,vendor,hostname,cluster,site,pue\r\n\r\n8,m,amd,h,c,s,1.35\r\n"

    (row,) = read_file(text.encode()).rows

    assert (row.accelerators, row.new_site["pue"]) == (8, Decimal("1.35"))


@pytest.mark.parametrize(
    ("row", "column", "code"),
    [
        pytest.param("kr-1,KR,s,static,gpu-1,amd,m,0,", "accelerators", "no-accelerators", id="0"),
        pytest.param(
            "kr-1,KR,s,static,gpu-1,amd,m,eight,", "accelerators", "whole-number", id="word"
        ),
        pytest.param("kr-1,KR,s,static,gpu-1,amd,m,65,", "accelerators", "whole-number", id="65"),
        pytest.param("kr-1,KR,s,static,gpu-1,amd,m,2,A", "serials", "serial-count", id="serials"),
        pytest.param("kr-1,KR,s,static,gpu-1,amd,m,2,A;A", "serials", "serial-twice", id="twice"),
        pytest.param(",KR,s,static,gpu-1,amd,m,2,", "site", "missing", id="no-site"),
        pytest.param("kr-1,KR,s,static,,amd,m,2,", "hostname", "missing", id="no-hostname"),
        pytest.param("a b,KR,s,static,gpu-1,amd,m,2,", "site", "slug", id="site-with-space"),
        pytest.param("kr-1,kr,s,static,gpu-1,amd,m,2,", "country", "country", id="country"),
        pytest.param("kr-1,KR,s,cloud,gpu-1,amd,m,2,", "cluster_kind", "choice", id="kind"),
        pytest.param("kr-1,KR,s,static,=1+1,amd,m,2,", "hostname", "formula", id="formula"),
        pytest.param(f"kr-1,KR,s,static,{'x' * 254},amd,m,2,", "hostname", "too-long", id="long"),
        pytest.param("kr-1,KR,s,static,gpu-1,amd", "", "field-count", id="short-row"),
        pytest.param('kr-1,KR,s,static,"gpu"x,amd,m,2,', "", "csv", id="quotes"),
    ],
)
def test_a_wrong_row_has_row_column_and_code(row: str, column: str, code: str) -> None:
    found = read(GOOD, row)

    assert first_error(found) == (3, column, code)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("pue", "1,35", "field-count"),
        ("pue", "0.9", "number"),
        ("pue", "NaN", "number"),
        ("tariff_per_kwh", "-1", "number"),
        ("tariff_per_kwh", "0.1", "currency"),
        ("state", "retired", "choice"),
        ("tags", "x" * 51, "too-long"),
        ("tags", "x;" * 10_000, "too-long"),
    ],
)
def test_figures_and_choices(name: str, value: str, code: str) -> None:
    found = read(f"{GOOD},{value}", header=f"{HEADER},{name}")

    assert first_error(found)[2] == code


def test_a_node_with_two_vendors_names_both_rows() -> None:
    found = read(GOOD, "kr-1,KR,seoul-1,static,GPU-1,nvidia,nvidia-l4,2,")

    assert first_error(found) == (3, "vendor", "two-vendors")
    assert found.errors[0].facts["row"] == "2"
    assert (found.errors[0].facts["vendor"], found.errors[0].facts["other_vendor"]) == (
        "amd", "nvidia",
    )  # fmt: skip


def test_a_node_twice_and_a_serial_twice() -> None:
    found = read(
        GOOD,
        "kr-1,KR,seoul-1,static,gpu-1,amd,amd-mi325x,2,C;D",
        "kr-1,KR,seoul-1,static,gpu-2,amd,amd-mi325x,2,E;A",
    )

    codes = [(error.row, error.code) for error in found.errors]
    assert codes == [(3, "node-twice"), (4, "serial-twice")]
    assert found.errors[1].facts == {"serial": "A", "vendor": "amd", "row": "2"}


def test_a_site_described_in_two_ways() -> None:
    found = read(GOOD, "kr-1,JP,seoul-1,static,gpu-2,amd,amd-mi325x,1,")

    assert first_error(found) == (3, "site", "site-differs")


@pytest.mark.parametrize(
    ("header", "column", "code", "near"),
    [
        pytest.param("site,cluster", "hostname", "column-missing", None, id="missing"),
        pytest.param(f"{HEADER},hostnam", "hostnam", "column-misspelt", "hostname", id="typo"),
        pytest.param(f"{HEADER},xyz", "xyz", "column-unknown", "", id="unknown"),
        pytest.param(f"{HEADER},site", "site", "column-twice", None, id="twice"),
        pytest.param("", "site", "column-missing", None, id="empty-file"),
    ],
)
def test_a_wrong_header_stops_the_file(
    header: str, column: str, code: str, near: str | None
) -> None:
    found = read(GOOD, header=header)

    assert first_error(found) == (1, column, code)
    assert found.errors[0].facts.get("near") == near
    assert found.rows == []


def test_a_file_that_is_not_utf_8_says_in_which_line() -> None:
    found = read_file(f"{HEADER}\nkr-1,KR,\xff".encode("latin-1"))

    assert first_error(found) == (2, "", "encoding")


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty"), (b"\xef\xbb\xbf\r\n", "empty"), (HEADER.encode() + b"\n\n", "no-rows")],
)
def test_a_file_without_a_node_is_refused(content: bytes, code: str) -> None:
    assert [error.code for error in read_file(content).errors] == [code]


def test_too_many_rows() -> None:
    rows = [f"kr-1,KR,s,static,gpu-{number},amd,m,1," for number in range(MOST_ROWS + 1)]

    found = read(*rows)

    assert first_error(found) == (MOST_ROWS + 2, "", "too-many-rows")


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    found = read_file(content)

    assert found.errors or found.rows == []


@given(st.lists(st.text('kr-1,;"=0AB\x00é', max_size=40), max_size=5))
def test_any_rows_are_read_or_refused_with_a_line(rows: list[str]) -> None:
    found = read(*rows)

    assert all(error.row >= 2 for error in found.errors)
    assert len(found.rows) + len(found.errors) >= (1 if found.row_count else 0)
