"""Writes audit entries, in the transaction of the change they tell of."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db.models import Model

from controlplane.audit.models import AuditEntry
from controlplane.audit.redaction import changed, safe
from controlplane.common import origin, request_id
from controlplane.common.tenants import tenant_id_of

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def record(
    *,
    actor: "User | None",
    action: str,
    subject: Model,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    result: str = "allowed",
    message: str = "",
) -> AuditEntry:
    """Add an entry; `actor` None is the system itself.

    `before` and `after` keep only the fields that differ, without secrets; more than 64 KiB is cut
    to its hash.
    """
    before, after = changed(before, after)
    source = origin.current()
    kind = source.kind if actor is not None and source.kind != "system" else None
    return AuditEntry.objects.create(
        actor_id=actor.pk if actor else None,
        actor_kind=kind or ("user" if actor else "system"),
        auth_method=source.auth_method,
        source_ip=source.address or None,
        tenant_id=tenant_id_of(subject),
        object_type=subject._meta.label_lower,  # noqa: SLF001 - Django's public model API
        object_id=str(subject.pk),
        object_repr=str(subject)[:200],
        action=action,
        result=result,
        reason=reason[:200],
        message=message[:500],
        before=safe(before),
        after=safe(after),
        request_id=request_id.current(),
    )
