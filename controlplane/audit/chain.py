"""Chains committed entries, and checks that nobody changed, dropped, moved or added one.

One chainer at a time (advisory lock). Business transactions never wait for it: entries get their
place in the chain after their commit, in the order of their times, and an entry that commits late
simply gets a later place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db import connection, transaction

from controlplane.audit import canonical
from controlplane.audit.models import AuditEntry, AuditLink

LOCK = 0x434F4E53_41554449
"""Number of the advisory lock: "CONSAUDI"."""
BATCH = 1000
READ_BATCH = 2000


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of a check of the chain."""

    links: int
    """Links that were checked, all good if `fault` is empty."""
    unchained: int
    """Entries without a place in the chain; more than a minute old means the chainer stands."""
    fault: str = ""
    """Empty, or a sentence that names the first bad link."""

    @property
    def is_good(self) -> bool:
        """True if every link and every chained entry is as it was."""
        return not self.fault


def extend() -> int:
    """Give committed entries their places; returns how many, 0 if another chainer is at work."""
    with transaction.atomic():
        if not _lock():
            return 0
        last = AuditLink.objects.order_by("-seq").first()
        seq = last.seq if last else 0
        previous = bytes(last.hash) if last else canonical.FIRST_PREVIOUS
        links = []
        for entry in AuditEntry.objects.filter(link=None).order_by("time", "id")[:BATCH]:
            seq += 1
            link = _link(seq, previous, entry)
            previous = bytes(link.hash)
            links.append(link)
        AuditLink.objects.bulk_create(links)
    return len(links)


def verify() -> Verdict:
    """Check the whole chain against the entries; the first fault ends the check."""
    checked, previous = 0, canonical.FIRST_PREVIOUS
    unchained = AuditEntry.objects.filter(link=None).count()
    for link in AuditLink.objects.order_by("seq").iterator(READ_BATCH):
        fault = _sequence_fault(link, expected=checked + 1, previous=previous)
        if fault:
            return Verdict(links=checked, unchained=unchained, fault=fault)
        checked, previous = checked + 1, bytes(link.hash)
    fault = next(_entry_faults(), "")
    return Verdict(links=checked, unchained=unchained, fault=fault)


def content(entry: AuditEntry) -> dict[str, Any]:
    """What is hashed of an entry: every column, as text, whole numbers and null."""
    return {
        "id": str(entry.pk),
        "time": entry.time.astimezone(UTC).isoformat(timespec="microseconds"),
        "tenant": _text(entry.tenant_id),
        "actor_id": _text(entry.actor_id),
        "actor_kind": entry.actor_kind,
        "auth_method": entry.auth_method,
        "source_ip": entry.source_ip,
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "object_repr": entry.object_repr,
        "action": entry.action,
        "result": entry.result,
        "reason": entry.reason,
        "message": entry.message,
        "before": entry.before,
        "after": entry.after,
        "request_id": entry.request_id,
        "operation_id": _text(entry.operation_id),
    }


def _lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        row = cursor.fetchone()
    return bool(row[0])


def _link(seq: int, previous: bytes, entry: AuditEntry) -> AuditLink:
    hashed = canonical.entry_hash(content(entry))
    return AuditLink(
        seq=seq, entry=entry, entry_hash=hashed, prev_hash=previous,
        hash=canonical.link_hash(seq=seq, prev_hash=previous, entry_hash=hashed),
    )  # fmt: skip


def _sequence_fault(link: AuditLink, *, expected: int, previous: bytes) -> str:
    if link.seq != expected:
        return f"Link {expected} is missing; the next one is {link.seq}."
    if bytes(link.prev_hash) != previous:
        return f"Link {link.seq} does not follow the link before it."
    computed = canonical.link_hash(
        seq=link.seq, prev_hash=previous, entry_hash=bytes(link.entry_hash)
    )
    return "" if bytes(link.hash) == computed else f"The hash of link {link.seq} is wrong."


def _entry_faults() -> Iterator[str]:
    """One sentence per link whose entry is missing or changed, in the order of the chain."""
    start = 0
    while True:
        links = list(AuditLink.objects.filter(seq__gt=start).order_by("seq")[:READ_BATCH])
        if not links:
            return
        entries = AuditEntry.objects.in_bulk([link.entry_id for link in links])
        for link in links:
            entry = entries.get(link.entry_id)
            if entry is None:
                yield f"The entry of link {link.seq} is missing."
            elif canonical.entry_hash(content(entry)) != bytes(link.entry_hash):
                yield f"The entry of link {link.seq} was changed."
        start = links[-1].seq


def _text(value: object) -> str | None:
    return None if value is None else str(value)
