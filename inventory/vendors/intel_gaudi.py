"""Intel Gaudi: `hl-smi`; no public list of node labels was found.

Source of the query's field names: Intel's page "System Management Interface Tool (hl-smi)" of the
Gaudi documentation. Values carry their units ("131072 MiB", "22 C").
"""

from collections.abc import Mapping

from inventory.vendors.base import (
    FoundAccelerator,
    LabelFacts,
    Vendor,
    VendorError,
    csv_rows,
    mebibytes,
    number,
    share,
)

_QUERY = "index,uuid,name,memory.total,memory.used,utilization.aip,power.draw,temperature.aip"


class IntelGaudi:
    """Reads the CSV of `hl-smi -Q`. The UUID is the serial."""

    slug = "intel-gaudi"
    name = "Intel Gaudi"
    resource_names = ("habana.ai/gaudi",)
    probe_command = ("hl-smi", "-Q", _QUERY, "-f", "csv,noheader")

    def parse(self, output: str) -> list[FoundAccelerator]:
        """One device per line. Raises VendorError for a line with other fields."""
        return [_accelerator(row) for row in csv_rows(output, tool="hl-smi")]

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """Nothing: nodes are found by their resource, `habana.ai/gaudi` in status.capacity."""
        return LabelFacts(model=None, memory_mib=None, count=None)


def _accelerator(row: list[str]) -> FoundAccelerator:
    if len(row) != _QUERY.count(",") + 1 or not row[0].isdecimal():
        raise VendorError(f"hl-smi printed {row!r}; expected the fields {_QUERY}.")
    index, uuid, model, total, used, busy, power, temperature = row
    return FoundAccelerator(
        slot=int(index),
        serial=uuid,
        name=model,
        memory_total_mib=mebibytes(total, unit="mib"),
        memory_used_mib=mebibytes(used, unit="mib"),
        utilisation=share(busy),
        power_watts=number(power, unit="W"),
        temperature_celsius=number(temperature, unit="C"),
    )


VENDOR: Vendor = IntelGaudi()
