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
MOST_ROWS = 5_000
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


@dataclass(frozen=True, slots=True)
class RowError:
    """What is wrong, where: `row` is the line as a spreadsheet counts it (the header is 1)."""

    row: int
    column: str
    code: str
    detail: str


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
    def __init__(self, column: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.column, self.code, self.detail = column, code, detail


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
        found.errors.append(RowError(line, "", "encoding", "The file is not UTF-8."))
        return found
    try:
        _read_rows(text, found)
    except csv.Error as error:
        found.errors.append(RowError(found.row_count + 2, "", "csv", f"Not a CSV line: {error}."))
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
            detail = f"The file has more than {MOST_ROWS} rows; split it by site or cluster."
            found.errors.append(RowError(reader.line_num, "", "too-many-rows", detail))
            return
        if len(values) != len(header):
            detail = f"The row has {len(values)} fields, the header {len(header)}."
            found.errors.append(RowError(reader.line_num, "", "field-count", detail))
            continue
        try:
            cells = {name: value.strip() for name, value in zip(header, values, strict=True)}
            found.rows.append(_row(reader.line_num, cells))
        except _Refused as error:
            found.errors.append(RowError(reader.line_num, error.column, error.code, error.detail))


def _header_errors(header: list[str]) -> Iterator[RowError]:
    for name in NEEDED:
        if name not in header:
            yield RowError(1, name, "column-missing", f"The column '{name}' is missing.")
    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            detail = f"The column '{name}' is unknown.{meant} Allowed: {', '.join(COLUMNS)}."
            yield RowError(1, name[:50], "column-unknown", detail)
        elif header.count(name) > 1:
            yield RowError(1, name, "column-twice", f"The column '{name}' is there twice.")


def _row(line: int, cells: Mapping[str, str]) -> ImportRow:
    for name, value in cells.items():
        _check_text(name, value)
    for name in NEEDED:
        if not cells[name]:
            raise _Refused(name, "missing", f"The column '{name}' is empty.")
    count = _whole(cells, "accelerators", most=MOST_ACCELERATORS)
    serials = _list(cells, "serials", most=128)
    if serials and len(serials) != count:
        detail = f"There are {len(serials)} serials for {count} accelerators."
        raise _Refused("serials", "serial-count", detail)
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
        detail = f"'{country}' is not a country. Write two capital letters, like KR."
        raise _Refused("country", "country", detail)
    pue = _decimal(cells, "pue", least=Decimal(1), most=Decimal(10))
    tariff = _decimal(cells, "tariff_per_kwh", least=Decimal(0), most=Decimal(100_000))
    currency = cells.get("currency", "")
    if tariff is not None and not (
        len(currency) == 3 and currency.isascii() and currency.isupper()
    ):
        detail = f"'{currency}' is not a currency. Write three capital letters, like KRW."
        raise _Refused("currency", "currency", detail)
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
        raise _Refused(name, "text", f"The column '{name}' holds a zero byte.")
    if value.startswith(_FORMULA) and name not in ("pue", "tariff_per_kwh", "accelerators"):
        detail = (
            f"'{value[:50]}' starts with {value[0]!r}, which a spreadsheet takes for a formula."
        )
        raise _Refused(name, "formula", detail)
    if len(value) > _LENGTHS.get(name, 16_384):
        raise _Refused(name, "too-long", f"The column '{name}' is longer than {_LENGTHS[name]}.")
    if name in ("site", "cluster") and not value.replace("-", "").replace("_", "").isalnum():
        detail = f"'{value}' is not a short name. Use letters, digits, '-' and '_'."
        raise (
            _Refused(name, "slug", detail)
            if value
            else _Refused(name, "missing", f"The column '{name}' is empty.")
        )


def _whole(cells: Mapping[str, str], name: str, *, most: int) -> int:
    text = cells[name]
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= most:
        detail = f"'{text[:50]}' is not a whole number from 1 to {most}."
        code = "no-accelerators" if text.strip("0") == "" else "number"
        raise _Refused(name, code, detail)
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
        detail = f"'{text[:50]}' is not a number from {least} to {most}, written like 1.35."
        raise _Refused(name, "number", detail)
    return value


def _choice(cells: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    text = cells.get(name, "")
    if text and text not in allowed:
        detail = f"'{text[:50]}' is not allowed. Allowed: {', '.join(allowed)}."
        raise _Refused(name, "choice", detail)
    return text


def _list(cells: Mapping[str, str], name: str, *, most: int) -> tuple[str, ...]:
    texts = tuple(text.strip() for text in cells.get(name, "").split(";") if text.strip())
    if any(len(text) > most for text in texts):
        raise _Refused(name, "too-long", f"A value in '{name}' is longer than {most}.")
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
    if other.vendor != row.vendor:
        detail = (
            f"A node has accelerators of one vendor: row {other.row} says {other.vendor} for "
            f"{row.hostname}, this row {row.vendor}."
        )
        return RowError(row.row, "vendor", "two-vendors", detail)
    detail = f"The node {row.hostname} of the cluster {row.cluster} is in row {other.row} already."
    return RowError(row.row, "hostname", "node-twice", detail)


def _serial_again(row: ImportRow, serials: dict[tuple[str, str], int]) -> RowError | None:
    for serial in row.serials:
        if (row.vendor, serial) in serials:
            where = serials[row.vendor, serial]
            place = "this row" if where == row.row else f"row {where}"
            detail = f"The serial {serial} of {row.vendor} is in {place} already."
            return RowError(row.row, "serials", "serial-twice", detail)
        serials[row.vendor, serial] = row.row
    return None


def _site_again(row: ImportRow, sites: dict[str, ImportRow]) -> RowError | None:
    if not row.new_site:
        return None
    other = sites.setdefault(row.site, row)
    if other.new_site == row.new_site:
        return None
    detail = f"The site {row.site} is described in another way in row {other.row}."
    return RowError(row.row, "site", "site-differs", detail)
