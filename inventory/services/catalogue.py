"""Brings the figures that ship with the product into the catalogue."""

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.common import permissions
from inventory.facts import loading
from inventory.facts.loading import AcceleratorFacts
from inventory.models import AcceleratorModel

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

_COLUMNS = (
    "memory_bytes",
    "bandwidth_bytes_per_second",
    "bf16_tflops",
    "fp8_tflops",
    "tdp_watts",
    "link_bytes_per_second",
)
_WHOLE = ("memory_bytes", "bandwidth_bytes_per_second", "link_bytes_per_second")


@transaction.atomic
def load_catalogue(*, actor: "User | None" = None) -> int:
    """Write every model that ships, new or changed; running it again changes nothing.

    Returns the number of models. `actor` None is the system at start. Raises NotPermittedError.
    """
    if actor is not None:
        permissions.require(actor, "inventory.change_acceleratormodel")
    rows = [_row(facts) for facts in loading.accelerators()]
    AcceleratorModel.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["slug"],
        update_fields=["name", *_COLUMNS, "figures", "updated_at"],
    )
    return len(rows)


def _row(facts: AcceleratorFacts) -> AcceleratorModel:
    values = {name: figure.value for name, figure in facts.figures.items()}
    columns = {
        name: int(value) if name in _WHOLE and value is not None else value
        for name in _COLUMNS
        for value in [values.get(name)]
    }
    figures = {
        name: {
            "value": figure.value,
            "source": figure.source,
            "confidence": figure.confidence,
            "note": figure.note,
        }
        for name, figure in facts.figures.items()
    }
    return AcceleratorModel(
        slug=facts.slug, vendor=facts.vendor, name=facts.name, figures=figures, **columns
    )
