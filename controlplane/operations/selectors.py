"""Reads of operations."""

from typing import TYPE_CHECKING

from django.db.models import Model, QuerySet

from controlplane.common import labels, permissions
from controlplane.operations.models import Operation

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def operations_for_viewer(viewer: "User") -> QuerySet[Operation]:
    """Operations with steps and starter, latest first; people of a tenant see those of theirs."""
    rows = Operation.objects.select_related("created_by").prefetch_related("steps")
    return permissions.restrict(rows, viewer, "operations.view_operation")


def operations_about(subject: Model) -> QuerySet[Operation]:
    """Operations on one row, latest first; for a page whose viewer may see the row."""
    return Operation.objects.prefetch_related("steps").filter(
        subject_type=labels.type_label(subject), subject_id=labels.key_label(subject)
    )
