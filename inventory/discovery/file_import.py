"""Reads an import file: CSV with one row per node, checked row by row; knows no database.

| column | holds | needed |
|---|---|---|
| site | short name of the site | always |
| site_name, country, jurisdiction | country as two capital letters | country, to make the site |
| pue, tariff_per_kwh, currency | figures of the site | no |
| cluster | short name of the cluster | always |
| cluster_name, cluster_kind | kubernetes, local or static | kind, to make the cluster |
| hostname | name of the node | always |
| vendor | slug of a vendor | always |
| model | slug of an accelerator model | always |
| accelerators | how many, 1 to 64 | always |
| serials | separated by `;`, in the order of the slots from 0 | no |
| state | planned, provisioning or ready (ready if empty) | no |
| rack, owner, operator, tags | texts; tags separated by `;` | no |

The first line names the columns, in any order. UTF-8, with or without a byte order mark.
"""

import csv
import difflib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

MOST_BYTES = 32 * 1024 * 1024
MOST_ROWS = 2_000
"""Stored within one web request: 5,000 nodes with 8 accelerators took 16 to 31 s on two cores."""
MOST_ERRORS = 1_000
MOST_ACCELERATORS = 64
NEEDED = ("site", "cluster", "hostname", "vendor", "model", "accelerators")
COLUMNS = (
    *NEEDED, "site_name", "country", "jurisdiction", "pue", "tariff_per_kwh", "currency",
    "cluster_name", "cluster_kind", "serials", "state", "rack", "owner", "operator", "tags",
)  # fmt: skip
KINDS = ("kubernetes", "local", "static")
STATES = ("planned", "provisioning", "ready")
_LENGTHS = {
    "site": 100, "cluster": 100, "hostname": 253, "vendor": 50, "model": 100, "site_name": 100,
    "cluster_name": 100, "jurisdiction": 32, "rack": 50, "owner": 100, "operator": 100,
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_CELL = 16_384
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class RowError:
    """What is wrong, where: `row` is the line as a spreadsheet counts it (the header is 1).

    The sentence for people is made from code and facts where languages are known, in
    `inventory.services.verdicts`.
    """

    row: int
    column: str
    code: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportRow:
    """One node as the file means it."""

    row: int
    site: str
    cluster: str
    hostname: str
    vendor: str
    model: str
    accelerators: int
    serials: tuple[str, ...]
    state: str
    details: Mapping[str, Any]
    """rack, owner, operator, tags."""
    new_site: Mapping[str, Any]
    """Columns that describe the site; empty if the row leaves them out."""
    new_cluster: Mapping[str, Any]


@dataclass(slots=True)
class ImportFile:
    """The rows that could be read, and everything that is wrong with the others."""

    rows: list[ImportRow] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)
    row_count: int = 0


class _Refused(Exception):  # noqa: N818 - never leaves this file
    def __init__(self, column: str, code: str, /, **facts: object) -> None:
        super().__init__(code)
        self.column, self.code = column, code
        self.facts = {name: str(value)[:_MOST_SHOWN] for name, value in facts.items()}


def read_file(content: bytes) -> ImportFile:
    """Read and check a file by itself; errors are in the order of the rows.

    Checked across rows: a node twice, a node with two vendors, a serial twice, a site described in
    two ways. What exists already is checked by the service.
    """
    found = ImportFile()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        found.errors.append(RowError(line, "", "encoding"))
        return found
    if not text.strip():
        found.errors.append(RowError(1, "", "empty", {"needed": ", ".join(NEEDED)}))
        return found
    try:
        _read_rows(text, found)
    except csv.Error as error:
        found.errors.append(RowError(found.row_count + 2, "", "csv", {"why": str(error)}))
    if not found.row_count and not found.errors:
        found.errors.append(RowError(2, "", "no-rows"))
    _check_across(found)
    found.errors.sort(key=lambda error: error.row)
    return found


def _read_rows(text: str, found: ImportFile) -> None:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = [name.strip().lower() for name in next(reader, [])]
    found.errors.extend(_header_errors(header))
    if found.errors:
        return
    for values in reader:
        if not any(value.strip() for value in values):
            continue
        found.row_count += 1
        if found.row_count > MOST_ROWS:
            most = {"most": str(MOST_ROWS)}
            found.errors.append(RowError(reader.line_num, "", "too-many-rows", most))
            return
        if len(values) != len(header):
            counts = {"found": str(len(values)), "expected": str(len(header))}
            found.errors.append(RowError(reader.line_num, "", "field-count", counts))
            continue
        try:
            cells = {name: value.strip() for name, value in zip(header, values, strict=True)}
            found.rows.append(_row(reader.line_num, cells))
        except _Refused as error:
            found.errors.append(RowError(reader.line_num, error.column, error.code, error.facts))


def _header_errors(header: list[str]) -> Iterator[RowError]:
    for name in NEEDED:
        if name not in header:
            yield RowError(1, name, "column-missing", {"column": name})
    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            facts = {"column": name[:50], "allowed": ", ".join(COLUMNS)}
            code = "column-misspelt" if near else "column-unknown"
            yield RowError(1, name[:50], code, facts | {"near": near[0] if near else ""})
        elif header.count(name) > 1:
            yield RowError(1, name, "column-twice", {"column": name})


def _row(line: int, cells: Mapping[str, str]) -> ImportRow:
    for name, value in cells.items():
        _check_text(name, value)
    for name in NEEDED:
        if not cells[name]:
            raise _Refused(name, "missing", column=name)
    count = _whole(cells, "accelerators", most=MOST_ACCELERATORS)
    serials = _list(cells, "serials", most=128)
    if serials and len(serials) != count:
        raise _Refused("serials", "serial-count", serials=len(serials), accelerators=count)
    return ImportRow(
        row=line,
        site=cells["site"],
        cluster=cells["cluster"],
        hostname=cells["hostname"],
        vendor=cells["vendor"],
        model=cells["model"],
        accelerators=count,
        serials=serials,
        state=_choice(cells, "state", STATES) or "ready",
        details={name: cells.get(name, "") for name in ("rack", "owner", "operator")}
        | {"tags": list(_list(cells, "tags", most=50))},
        new_site=_site(cells),
        new_cluster=_cluster(cells),
    )


def _site(cells: Mapping[str, str]) -> dict[str, Any]:
    country = cells.get("country", "")
    if country and not (len(country) == 2 and country.isascii() and country.isupper()):
        raise _Refused("country", "country", value=country)
    pue = _decimal(cells, "pue", least=Decimal(1), most=Decimal(10))
    tariff = _decimal(cells, "tariff_per_kwh", least=Decimal(0), most=Decimal(100_000))
    currency = cells.get("currency", "")
    if tariff is not None and not (
        len(currency) == 3 and currency.isascii() and currency.isupper()
    ):
        raise _Refused("currency", "currency", value=currency)
    described = {
        "name": cells.get("site_name", ""),
        "country": country,
        "jurisdiction": cells.get("jurisdiction", "") or country,
        "pue": pue,
        "tariff_per_kwh": tariff,
        "currency": currency,
    }
    return described if any(value not in ("", None) for value in described.values()) else {}


def _cluster(cells: Mapping[str, str]) -> dict[str, Any]:
    kind = _choice(cells, "cluster_kind", KINDS)
    return {"name": cells.get("cluster_name", ""), "kind": kind} if kind else {}


def _check_text(name: str, value: str) -> None:
    if "\x00" in value:
        raise _Refused(name, "text", column=name)
    if value.startswith(_FORMULA) and name not in ("pue", "tariff_per_kwh", "accelerators"):
        raise _Refused(name, "formula", value=value[:50], first=value[0])
    most = _LENGTHS.get(name, _LONGEST_CELL)
    if len(value) > most:
        raise _Refused(name, "too-long", column=name, most=most)
    is_slug = value.replace("-", "").replace("_", "").isalnum() and value.isascii()
    if name in ("site", "cluster") and value and not is_slug:
        raise _Refused(name, "slug", value=value)


def _whole(cells: Mapping[str, str], name: str, *, most: int) -> int:
    text = cells[name]
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= most:
        code = "no-accelerators" if text.strip("0") == "" else "whole-number"
        raise _Refused(name, code, value=text[:50], most=most)
    return int(text)


def _decimal(
    cells: Mapping[str, str], name: str, *, least: Decimal, most: Decimal
) -> Decimal | None:
    text = cells.get(name, "")
    if not text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or not least <= value <= most:
        raise _Refused(name, "number", value=text[:50], least=least, most=most)
    return value


def _choice(cells: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    text = cells.get(name, "")
    if text and text not in allowed:
        raise _Refused(name, "choice", value=text[:50], allowed=", ".join(allowed))
    return text


def _list(cells: Mapping[str, str], name: str, *, most: int) -> tuple[str, ...]:
    texts = tuple(text.strip() for text in cells.get(name, "").split(";") if text.strip())
    if any(len(text) > most for text in texts):
        raise _Refused(name, "too-long", column=name, most=most)
    return texts


def _check_across(found: ImportFile) -> None:
    """Mistakes that only show between rows; a row that has one is taken out."""
    first: dict[tuple[str, str], ImportRow] = {}
    serials: dict[tuple[str, str], int] = {}
    sites: dict[str, ImportRow] = {}
    kept = []
    for row in found.rows:
        error = (
            _node_again(row, first.get((row.cluster, row.hostname.lower())))
            or _serial_again(row, serials)
            or _site_again(row, sites)
        )
        if error is not None:
            found.errors.append(error)
            continue
        first[row.cluster, row.hostname.lower()] = row
        kept.append(row)
    found.rows = kept


def _node_again(row: ImportRow, other: ImportRow | None) -> RowError | None:
    if other is None:
        return None
    facts = {"node": row.hostname, "cluster": row.cluster, "row": str(other.row)}
    if other.vendor == row.vendor:
        return RowError(row.row, "hostname", "node-twice", facts)
    vendors = {"vendor": other.vendor, "other_vendor": row.vendor}
    return RowError(row.row, "vendor", "two-vendors", facts | vendors)


def _serial_again(row: ImportRow, serials: dict[tuple[str, str], int]) -> RowError | None:
    for serial in row.serials:
        if (row.vendor, serial) in serials:
            where = str(serials[row.vendor, serial])
            facts = {"serial": serial, "vendor": row.vendor, "row": where}
            return RowError(row.row, "serials", "serial-twice", facts)
        serials[row.vendor, serial] = row.row
    return None


def _site_again(row: ImportRow, sites: dict[str, ImportRow]) -> RowError | None:
    if not row.new_site:
        return None
    other = sites.setdefault(row.site, row)
    if other.new_site == row.new_site:
        return None
    facts = {"site": row.site, "row": str(other.row)}
    return RowError(row.row, "site", "site-differs", facts)
