"""Reads of the audit log."""

from typing import TYPE_CHECKING

from django.db.models import Model, QuerySet

from controlplane.audit.models import AuditEntry
from controlplane.common import labels, permissions

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def entries_for_viewer(viewer: "User") -> QuerySet[AuditEntry]:
    """Entries with their actor, latest first; people of a tenant see those of their tenant."""
    rows = AuditEntry.objects.select_related("actor")
    return permissions.restrict(rows, viewer, "audit.view_auditentry")


def entries_about(subject: Model) -> QuerySet[AuditEntry]:
    """Entries about one row, latest first; for its timeline, whose viewer may see the row."""
    return AuditEntry.objects.select_related("actor").filter(
        object_type=labels.type_label(subject), object_id=labels.key_label(subject)
    )
