"""Rebellions: `rbln-stat -j`, labels of rbln-npu-feature-discovery.

Source of the keys: several public readers of `rbln-stat -j` that agree (KMD_version, devices with
npu, name, sid, uuid, memory, util, temperature). Memory is a number of bytes as text. The unit of
`card_power` differs between them, so power is read only where the text carries its unit.
"""

from collections.abc import Mapping
from typing import Any

from inventory.vendors.base import (
    FoundAccelerator,
    LabelFacts,
    Vendor,
    VendorError,
    json_document,
    label_facts,
    mebibytes,
    number,
    quantity,
    share,
)

_WATTS_PER_UNIT = {"W": 1.0, "mW": 0.001}


class Rebellions:
    """Reads the JSON of `rbln-stat`. Serial: the device's UUID, else the card's sid.

    The sid comes second because the logical devices of one card share it.
    """

    slug = "rebellions"
    name = "Rebellions"
    resource_names = ("rebellions.ai/ATOM",)
    probe_command = ("rbln-stat", "-j")

    def parse(self, output: str) -> list[FoundAccelerator]:
        """One device per entry of `devices`. Raises VendorError."""
        document = json_document(output, tool="rbln-stat")
        if not isinstance(document, dict) or not isinstance(document.get("devices"), list):
            raise VendorError("rbln-stat printed JSON without a list 'devices'.")
        found = [_accelerator(device) for device in document["devices"]]
        return sorted(found, key=lambda accelerator: accelerator.slot)

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """Labels of rbln-npu-feature-discovery."""
        return label_facts(
            labels, model="rebellions.ai/npu.product", count="rebellions.ai/npu.count"
        )


def _accelerator(device: Any) -> FoundAccelerator:
    if not isinstance(device, dict) or not isinstance(device.get("npu"), int):
        raise VendorError(f"rbln-stat printed {device!r}; expected an object with a number 'npu'.")
    memory = device.get("memory") or {}
    return FoundAccelerator(
        slot=device["npu"],
        serial=str(device.get("uuid") or device.get("sid") or ""),
        name=str(device.get("name") or ""),
        memory_total_mib=mebibytes(str(memory.get("total", "")), unit="b"),
        memory_used_mib=mebibytes(str(memory.get("used", "")), unit="b"),
        utilisation=share(str(device.get("util", ""))),
        power_watts=_watts(str(device.get("card_power", ""))),
        temperature_celsius=number(str(device.get("temperature", "")), unit="C"),
    )


def _watts(text: str) -> float | None:
    found = quantity(text)
    factor = None if found is None else _WATTS_PER_UNIT.get(found[1])
    return None if found is None or factor is None else found[0] * factor


VENDOR: Vendor = Rebellions()
