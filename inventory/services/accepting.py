"""Takes over many findings: one operation, and each by itself, so that one refusal stays one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.common.errors import DomainError
from controlplane.operations import services as operations
from controlplane.operations.errors import OperationLostError
from controlplane.operations.models import Operation
from inventory import selectors
from inventory.errors import NothingToAcceptError, TooManyFindingsError
from inventory.models import Acceptance, Finding
from inventory.services.findings import accept_finding
from inventory.services.placing import model_named

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

MOST_FINDINGS = 2_000
MOST_REFUSED = 100
AT_ONCE = 20
"""Findings between two looks at whether somebody wants it to end."""


@transaction.atomic
def start_accepting(
    *,
    findings: Sequence[UUID] = (),
    cluster: str = "",
    kind: str = "",
    model: str = "",
    reason: str,
    actor: "User",
) -> Operation:
    """Start to take over open findings: those named, or all of a cluster and a kind.

    `model` is used for nodes of which no source names the model. Raises NotPermittedError,
    UnknownModelError, NothingToAcceptError or TooManyFindingsError.
    """
    permissions.require(actor, "inventory.override_discovery")
    if model:
        model_named(model)
    rows = selectors.findings_for_viewer(actor).filter(state=Finding.State.OPEN)
    if findings:
        rows = rows.filter(pk__in=list(findings))
    elif cluster and kind:
        rows = rows.filter(cluster__slug=cluster, kind=kind)
    else:
        rows = rows.none()
    ids = [str(pk) for pk in rows.order_by("hostname", "pk").values_list("pk", flat=True)]
    if not ids:
        raise NothingToAcceptError
    if len(ids) > MOST_FINDINGS:
        raise TooManyFindingsError(count=len(ids), most=MOST_FINDINGS)
    row = Acceptance.objects.create(
        findings=ids, model=model, reason=reason[:200], created_by=actor
    )
    audit.record(
        actor=actor, action="finding.accept-many", subject=row, reason=reason,
        after={"findings": len(ids), "model": model},
    )  # fmt: skip
    return operations.start(
        kind="inventory.accept-findings",
        subject=row,
        task="inventory.tasks.accept_findings",
        actor=actor,
    )


def run_accepting(*, operation_id: UUID | str) -> None:
    """Take them over, one transaction each; running it again goes on with those still open."""
    operation = operations.claim(operation_id)
    if operation is None:
        return
    row = Acceptance.objects.select_related("created_by").get(pk=operation.subject_id)
    row.refused, row.refused_count = [], 0
    total = len(row.findings)
    try:
        for start in range(0, total, AT_ONCE):
            if operations.is_cancel_requested(operation):
                operations.cancelled(operation)
                return
            for finding_id in row.findings[start : start + AT_ONCE]:
                _accept(row, UUID(finding_id))
            row.accepted = _accepted(row)
            row.save(update_fields=["accepted", "refused", "refused_count", "updated_at"])
            done = min(start + AT_ONCE, total)
            operations.progress(operation, done=done, total=total, unit="findings")
        result = {"accepted": row.accepted, "refused": row.refused_count, "why": row.refused[:20]}
        operations.succeed(operation, result=result)
    except OperationLostError:
        return


def _accept(row: Acceptance, finding_id: UUID) -> None:
    finding = Finding.objects.filter(pk=finding_id, state=Finding.State.OPEN).first()
    if finding is None:
        return
    try:
        accept_finding(
            finding_id=finding.pk, model=row.model, reason=row.reason, actor=row.created_by
        )
    except DomainError as error:
        row.refused_count += 1
        if len(row.refused) < MOST_REFUSED:
            refusal = {
                "finding": str(finding.pk), "hostname": finding.hostname, "code": error.code,
                "detail": str(error),
            }  # fmt: skip
            row.refused.append(refusal)


def _accepted(row: Acceptance) -> int:
    rows = Finding.objects.filter(pk__in=row.findings, state=Finding.State.ACCEPTED)
    return rows.count()
