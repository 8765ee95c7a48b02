"""NVIDIA: `nvidia-smi`, gpu-feature-discovery labels.

Source of the query's field names and marks ("[N/A]", "[GPU is lost]"): `nvidia-smi
--help-query-gpu` and NVIDIA's manual page of nvidia-smi.
"""

from collections.abc import Mapping
from dataclasses import replace

from inventory.vendors.base import (
    FoundAccelerator,
    LabelFacts,
    Vendor,
    VendorError,
    csv_rows,
    label_facts,
    mebibytes,
    number,
    share,
    whole_number,
)

_QUERY = (
    "index,uuid,name,memory.total,memory.used,utilization.gpu,power.draw,temperature.gpu,"
    "ecc.errors.uncorrected.volatile.total"
)
_FAULTS = ("unknown error", "gpu is lost", "gpu requires reset", "reset required")


class Nvidia:
    """Reads the CSV of `nvidia-smi --query-gpu`. The UUID is the serial: every board has one."""

    slug = "nvidia"
    name = "NVIDIA"
    resource_names = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
    probe_command = ("nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")

    def parse(self, output: str) -> list[FoundAccelerator]:
        """One device per line. Raises VendorError for a line with other fields."""
        return [_accelerator(row) for row in csv_rows(output, tool="nvidia-smi")]

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """Labels of gpu-feature-discovery; memory is a plain number of MiB.

        The product ends in -SHARED where GPUs are handed out in shares, and in -MIG-<profile> where
        the labels describe slices (strategy single).
        """
        facts = label_facts(
            labels,
            model="nvidia.com/gpu.product",
            memory="nvidia.com/gpu.memory",
            memory_unit="mib",
            count="nvidia.com/gpu.count",
        )
        product, _, profile = (facts.model or "").removesuffix("-SHARED").partition("-MIG-")
        replicas = whole_number(labels.get("nvidia.com/gpu.replicas"))
        return replace(
            facts,
            model=product or None,
            replicas=replicas if replicas and replicas > 1 else None,
            partition=profile or None,
        )


def _accelerator(row: list[str]) -> FoundAccelerator:
    if len(row) != _QUERY.count(",") + 1 or not row[0].isdecimal():
        raise VendorError(f"nvidia-smi printed {row!r}; expected the fields {_QUERY}.")
    index, uuid, model, *readings = row
    is_lost = any(text.strip("[]").lower() in _FAULTS for text in readings)
    total, used, busy, power, temperature, errors = (_reading(text) for text in readings)
    return FoundAccelerator(
        slot=int(index),
        serial=uuid,
        name=model,
        memory_total_mib=mebibytes(total, unit="mib"),
        memory_used_mib=mebibytes(used, unit="mib"),
        utilisation=share(busy),
        power_watts=number(power, unit="W"),
        temperature_celsius=number(temperature, unit="C"),
        health="failed" if is_lost else _health(errors),
    )


def _reading(text: str) -> str:
    """Every mark in square brackets stands for a missing reading; it is never 0."""
    return "" if text.startswith("[") or text == "ERR!" else text


def _health(uncorrected_errors: str) -> str:
    count = number(uncorrected_errors, unit="")
    return "degraded" if count else "healthy"


VENDOR: Vendor = Nvidia()
