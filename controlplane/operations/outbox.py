"""Writes events in the transaction of the change they tell of."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Model

from controlplane.common import labels, request_id
from controlplane.common.tenants import tenant_id_of
from controlplane.operations.models import OutboxEvent


def emit(type: str, *, subject: Model, data: dict[str, Any] | None = None) -> OutboxEvent:  # noqa: A002 - the word of CloudEvents
    """Add an event; whoever wants it hears it after the commit, at least once."""
    event = _event(type, subject, data or {})
    event.save(force_insert=True)
    return event


def emit_each(events: Iterable[tuple[str, Model, dict[str, Any]]]) -> None:
    """Add events given as (type, subject, data) in one statement; for what comes by the hundred."""
    OutboxEvent.objects.bulk_create([_event(*each) for each in events], batch_size=500)


def _event(type_: str, subject: Model, data: dict[str, Any]) -> OutboxEvent:
    return OutboxEvent(
        type=type_,
        subject_type=labels.type_label(subject),
        subject_id=labels.key_label(subject),
        subject_repr=labels.text_label(subject),
        tenant_id=tenant_id_of(subject),
        data=data,
        request_id=request_id.current(),
    )
