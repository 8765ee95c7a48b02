"""FuriosaAI: `furiosa-smi info --format json`, labels of furiosa-feature-discovery.

Source of the keys: FuriosaAI's page on furiosa-smi and public recordings of its JSON (arch,
dev_name, device_uuid, device_sn, temperature, power). Memory and load are in another subcommand
(`furiosa-smi status`), so they are unknown here.
"""

import re
from collections.abc import Mapping
from typing import Any

from inventory.vendors.base import (
    FoundAccelerator,
    LabelFacts,
    Vendor,
    VendorError,
    json_document,
    label_facts,
    number,
)

_DEVICE = re.compile(r"npu(\d+)")


class Furiosa:
    """Reads the JSON of `furiosa-smi info`. Serial: the card's serial number, else its UUID."""

    slug = "furiosa"
    name = "FuriosaAI"
    resource_names = ("furiosa.ai/rngd",)
    probe_command = ("furiosa-smi", "info", "--format", "json")

    def parse(self, output: str) -> list[FoundAccelerator]:
        """One device per entry of the list. Raises VendorError."""
        document = json_document(output, tool="furiosa-smi")
        if not isinstance(document, list):
            raise VendorError("furiosa-smi printed JSON that is not a list of devices.")
        found = [_accelerator(device) for device in document]
        return sorted(found, key=lambda accelerator: accelerator.slot)

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """Labels of furiosa-feature-discovery."""
        return label_facts(labels, model="furiosa.ai/npu.product", count="furiosa.ai/npu.count")


def _accelerator(device: Any) -> FoundAccelerator:
    match = _DEVICE.fullmatch(str(device.get("dev_name"))) if isinstance(device, dict) else None
    if match is None:
        raise VendorError(f"furiosa-smi printed {device!r}; expected 'dev_name' like 'npu0'.")
    return FoundAccelerator(
        slot=int(match[1]),
        serial=str(device.get("device_sn") or device.get("device_uuid") or ""),
        name=str(device.get("arch") or ""),
        power_watts=number(str(device.get("power", "")), unit="W"),
        temperature_celsius=number(str(device.get("temperature", "")), unit="°C"),
    )


VENDOR: Vendor = Furiosa()
