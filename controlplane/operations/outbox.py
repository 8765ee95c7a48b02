"""Writes events in the transaction of the change they tell of."""

from typing import Any

from django.db.models import Model

from controlplane.common import labels, request_id
from controlplane.common.tenants import tenant_id_of
from controlplane.operations.models import OutboxEvent


def emit(type: str, *, subject: Model, data: dict[str, Any] | None = None) -> OutboxEvent:  # noqa: A002 - the word of CloudEvents
    """Add an event; whoever wants it hears it after the commit, at least once."""
    return OutboxEvent.objects.create(
        type=type,
        subject_type=labels.type_label(subject),
        subject_id=labels.key_label(subject),
        subject_repr=labels.text_label(subject),
        tenant_id=tenant_id_of(subject),
        data=data or {},
        request_id=request_id.current(),
    )
