"""Writes audit entries, in the transaction of the change they tell of."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Model
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.audit.redaction import changed, safe
from controlplane.common import labels, origin, request_id
from controlplane.common.denials import Denial
from controlplane.common.tenants import tenant_id_of

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

DENIALS_FOLDED_WITHIN = timedelta(minutes=1)


def record(  # noqa: PLR0913 - keywords only, each a column of the entry
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
        object_type=labels.type_label(subject),
        object_id=labels.key_label(subject),
        object_repr=labels.text_label(subject),
        action=action,
        result=result,
        reason=reason[:200],
        message=message[:500],
        before=safe(before),
        after=safe(after),
        request_id=request_id.current(),
    )


def record_denial(denial: Denial) -> AuditEntry | None:
    """Add an entry for a refused action; None if one within the last minute says the same."""
    subject = denial.subject if denial.subject is not None else denial.actor
    repeated = AuditEntry.objects.filter(
        actor_id=denial.actor.pk,
        action=denial.action,
        object_id=labels.key_label(subject),
        result=AuditEntry.Result.DENIED,
        time__gt=timezone.now() - DENIALS_FOLDED_WITHIN,
    )
    if repeated.exists():
        return None
    return record(
        actor=denial.actor, action=denial.action, subject=subject, result=AuditEntry.Result.DENIED
    )
