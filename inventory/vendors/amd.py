"""AMD: `rocm-smi --json`, labels of the k8s-node-labeller.

Source of the keys: ROCm's `rocm_smi.py` (output of --showproductname, --showuniqueid, --showserial,
--showmeminfo vram, --showuse, --showpower, --showtemp with --json). Keys changed their capitals
between releases, so they are compared in lower case. Memory is in bytes.
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
    mebibytes,
    number,
    share,
)

_CARD = re.compile(r"card(\d+)")
_OLDER_PREFIX = "beta.amd.com/gpu."
_POWER = (
    "current socket graphics package power (w)",
    "average graphics package power (w)",
)
_TEMPERATURE = ("temperature (sensor junction) (c)", "temperature (sensor edge) (c)")


class Amd:
    """Reads the JSON of `rocm-smi`. Serial: the serial number, else the unique id of the chip."""

    slug = "amd"
    name = "AMD"
    resource_names = ("amd.com/gpu",)
    probe_command = (
        "rocm-smi", "--showproductname", "--showuniqueid", "--showserial", "--showmeminfo", "vram",
        "--showuse", "--showpower", "--showtemp", "--json",
    )  # fmt: skip

    def parse(self, output: str) -> list[FoundAccelerator]:
        """One device per `card<n>`. Warnings before the JSON are skipped. Raises VendorError."""
        document = json_document(output[max(output.find("{"), 0) :], tool="rocm-smi")
        if not isinstance(document, dict):
            raise VendorError("rocm-smi printed JSON without cards; expected {'card0': {...}}.")
        found = [
            _accelerator(int(match[1]), card)
            for key, card in document.items()
            if (match := _CARD.fullmatch(key))
        ]
        return sorted(found, key=lambda accelerator: accelerator.slot)

    def read_labels(self, labels: Mapping[str, str]) -> LabelFacts:
        """Labels of the node labeller, else its older ones with the value inside the key."""
        facts = label_facts(
            labels, model="amd.com/gpu.product-name", memory="amd.com/gpu.vram", memory_unit="g"
        )
        if facts.model or facts.memory_mib:
            return facts
        older = {
            f"{_OLDER_PREFIX}{what}": value
            for key in labels
            if key.startswith(_OLDER_PREFIX)
            for what, dot, value in [key.removeprefix(_OLDER_PREFIX).partition(".")]
            if dot
        }
        return label_facts(
            {**older, **{key: text for key, text in labels.items() if key not in older}},
            model=f"{_OLDER_PREFIX}product-name",
            memory=f"{_OLDER_PREFIX}vram",
            memory_unit="g",
        )


def _accelerator(slot: int, card: Any) -> FoundAccelerator:
    if not isinstance(card, dict):
        raise VendorError(f"rocm-smi printed {card!r} for card{slot}; expected an object.")
    readings = {key.lower(): str(text) for key, text in card.items()}
    return FoundAccelerator(
        slot=slot,
        serial=_first(readings, ("serial number", "unique id")),
        name=_first(readings, ("card series", "device name", "card model")),
        memory_total_mib=mebibytes(readings.get("vram total memory (b)", ""), unit="b"),
        memory_used_mib=mebibytes(readings.get("vram total used memory (b)", ""), unit="b"),
        utilisation=share(readings.get("gpu use (%)", "")),
        power_watts=number(_first(readings, _POWER), unit="W"),
        temperature_celsius=number(_first(readings, _TEMPERATURE), unit="C"),
    )


def _first(readings: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """First reading that says something; "N/A" says nothing."""
    texts = (readings.get(key, "").strip() for key in keys)
    return next((text for text in texts if text and text.upper() != "N/A"), "")


VENDOR: Vendor = Amd()
