"""What a vendor file offers, and the small readers that several of them share."""

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

_MIB_PER_UNIT: Mapping[str, float] = {
    "b": 1 / 2**20,
    "bytes": 1 / 2**20,
    "kb": 1000 / 2**20,
    "kib": 1 / 2**10,
    "mb": 10**6 / 2**20,
    "mib": 1.0,
    "m": 1.0,
    "gb": 10**9 / 2**20,
    "gib": 1024.0,
    "g": 1024.0,
}
_QUANTITY = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([^\d\s]*)\s*")
MAXIMUM_OUTPUT_CHARACTERS = 4 * 1024 * 1024


class VendorError(Exception):
    """The tool's output cannot be read; the message says what was expected and what to do."""


@dataclass(frozen=True, slots=True)
class FoundAccelerator:
    """A device as the vendor's tool prints it. None: the tool said nothing."""

    slot: int
    """The tool's index, from 0."""
    serial: str
    """Serial or UUID; empty if the tool prints neither."""
    name: str
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    utilisation: float | None = None
    """Share of time the device was busy, 0 to 1."""
    power_watts: float | None = None
    temperature_celsius: float | None = None
    health: str = "healthy"
    """healthy: the tool lists the device and reports no fault; degraded; failed."""


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What the labels of a Kubernetes node say. None: no such label."""

    model: str | None
    memory_mib: int | None
    count: int | None
    replicas: int | None = None
    """Into how many shares each device is handed out; None: no label speaks of shares."""
    partition: str | None = None
    """Profile of the slices that the labels describe instead of whole devices."""


class Vendor(Protocol):
    """A vendor file: `VENDOR: Vendor = …` is its last line."""

    @property
    def slug(self) -> str:
        """Slug with hyphens, the file's name with underscores."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def resource_names(self) -> tuple[str, ...]:
        """Kubernetes resource names of whole devices, most common first."""

    @property
    def probe_command(self) -> tuple[str, ...]:
        """Command whose output `parse` reads; read-only, needs no arguments from outside.

        Empty: no tool is read.
        """

    def parse(self, output: str) -> list[FoundAccelerator]:
        """Devices in the order of their slots. Raises VendorError; no devices is an empty list."""

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """What the labels of a node say about its accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownByName:
    """A vendor whose tool nobody reads here: names of resources and labels, and a plain refusal.

    No recorded output of its tool is at hand, and a wrong reading would be worse than none.
    """

    slug: str
    name: str
    resource_names: tuple[str, ...]
    """Empty: a cluster gives its devices out by claims only."""
    model_label: str | None = None
    memory_label: str | None = None
    memory_unit: str = ""
    count_label: str | None = None
    probe_command: tuple[str, ...] = ()

    def parse(self, output: str) -> list[FoundAccelerator]:
        """Always raises VendorError."""
        raise VendorError(
            f"No tool of {self.name} is read. Enter the node's accelerators in an import file, or "
            "let the cluster's discovery find them."
        )

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """What the named labels say; nothing without one."""
        return label_facts(
            labels,
            model=self.model_label,
            memory=self.memory_label,
            memory_unit=self.memory_unit,
            count=self.count_label,
        )


def mebibytes(text: str, *, unit: str = "") -> int | None:
    """Memory as whole MiB from "81559 MiB", "256G", "68702699520" with `unit="b"`; None if absent.

    G alone is read as GiB: it is what AMD's labeller writes. Raises VendorError for text that is
    neither a quantity nor one of the marks for "not available".
    """
    found = quantity(text)
    if found is None:
        return None
    value, printed = found
    factor = _MIB_PER_UNIT.get((printed or unit).lower())
    if factor is None or value < 0:
        raise VendorError(
            f"{text!r} is not an amount of memory. Units: {', '.join(_MIB_PER_UNIT)}."
        )
    return int(value * factor)


def number(text: str, *, unit: str) -> float | None:
    """The number before the unit; None if absent. A bare number is accepted."""
    found = quantity(text)
    if found is None:
        return None
    value, printed = found
    if printed not in ("", unit):
        raise VendorError(f"{text!r} has the unit {printed!r}; expected {unit!r}.")
    return value


def share(text: str) -> float | None:
    """Percent as a share from 0 to 1; None if absent."""
    percent = number(text, unit="%")
    if percent is not None and not 0 <= percent <= 100:
        raise VendorError(f"{text!r} is not between 0 and 100 percent.")
    return None if percent is None else percent / 100


def quantity(text: str) -> tuple[float, str] | None:
    """Number and unit of "30.18 W"; None for an empty text, "N/A", "[N/A]" and the like."""
    if text.strip().strip("[]").lower() in (
        "",
        "n/a",
        "na",
        "none",
        "-",
        "not supported",
        "not available",
    ):
        return None
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise VendorError(f"{text!r} is not a number with a unit.")
    return float(match[1]), match[2]


def csv_rows(output: str, *, tool: str) -> list[list[str]]:
    """Lines that a tool printed as comma-separated fields, without empty ones."""
    if len(output) > MAXIMUM_OUTPUT_CHARACTERS:
        raise VendorError(f"{tool} printed more than {MAXIMUM_OUTPUT_CHARACTERS} characters.")
    try:
        return [
            [text.strip() for text in row]
            for row in csv.reader(io.StringIO(output, newline=None), skipinitialspace=True)
            if row
        ]
    except csv.Error as error:
        raise VendorError(f"{tool} did not print comma-separated lines: {error}.") from error


def json_document(output: str, *, tool: str) -> Any:
    """The JSON that a tool printed. Raises VendorError with the tool's name and the place."""
    if len(output) > MAXIMUM_OUTPUT_CHARACTERS:
        raise VendorError(f"{tool} printed more than {MAXIMUM_OUTPUT_CHARACTERS} characters.")
    try:
        return json.loads(output)
    except (json.JSONDecodeError, RecursionError) as error:
        raise VendorError(f"{tool} did not print JSON: {error}.") from error


def whole_number(text: str | None) -> int | None:
    """A label's count; None if there is no label or it is no whole number."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None


def label_facts(
    labels: Mapping[str, str],
    *,
    model: str | None = None,
    memory: str | None = None,
    memory_unit: str = "",
    count: str | None = None,
) -> LabelFacts:
    """Read the labels named; a label that cannot be read counts as absent."""
    try:
        size = mebibytes(labels.get(memory or "", ""), unit=memory_unit)
    except VendorError:
        size = None
    return LabelFacts(
        model=labels.get(model or "") or None,
        memory_mib=size,
        count=whole_number(labels.get(count or "")),
    )
