"""What people do with a difference: take over what was observed, keep what was meant, let it be."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import permissions
from inventory.errors import FindingClosedError, FindingNotAcceptableError
from inventory.models import Accelerator, Finding
from inventory.services import accelerators
from inventory.services.nodes import create_node, locked_node
from inventory.services.placing import model_named

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

Apply = Callable[[Finding, str, "User"], None]


@transaction.atomic
def accept_finding(*, finding_id: UUID, reason: str, actor: "User", model: str = "") -> Finding:
    """Change the plan to what was observed, as the finding suggests, and close it.

    `model` is the slug of the accelerator model where the finding names none. Raises
    FindingClosedError, FindingNotAcceptableError where there is nothing to take over, or the errors
    of the change itself (SerialInUseError, NodeExistsError, ...).
    """
    finding = _locked(finding_id, actor=actor)
    apply = _APPLY.get(finding.suggestion.get("do", ""))
    if apply is None:
        raise FindingNotAcceptableError(
            node=finding.hostname,
            why=_("the node reports another vendor")
            if finding.kind == Finding.Kind.VENDOR_DIFFERS
            else _("somebody has to look at the node"),
        )
    if model and not finding.suggestion.get("model"):
        finding.suggestion = {**finding.suggestion, "model": model}
    apply(finding, reason, actor)
    return _close(finding, Finding.State.ACCEPTED, reason=reason, actor=actor)


@transaction.atomic
def override_finding(*, finding_id: UUID, reason: str, actor: "User") -> Finding:
    """Say that the plan is right and the observation is not; the same difference stays closed."""
    finding = _locked(finding_id, actor=actor)
    return _close(finding, Finding.State.OVERRIDDEN, reason=reason, actor=actor)


@transaction.atomic
def dismiss_finding(*, finding_id: UUID, reason: str, actor: "User") -> Finding:
    """Say that the difference does not matter; the same difference stays closed."""
    finding = _locked(finding_id, actor=actor)
    return _close(finding, Finding.State.DISMISSED, reason=reason, actor=actor)


def _locked(finding_id: UUID, *, actor: "User") -> Finding:
    """The open finding, locked after its node. Raises FindingClosedError or NotPermittedError."""
    node_id = Finding.objects.values_list("node_id", flat=True).get(pk=finding_id)
    if node_id is not None:
        locked_node(node_id)
    finding = Finding.objects.select_for_update(no_key=True, of=("self",)).get(pk=finding_id)
    permissions.require(actor, "inventory.override_discovery", finding)
    if finding.state != Finding.State.OPEN:
        raise FindingClosedError(node=finding.hostname, state=Finding.State(finding.state))
    return finding


def _close(finding: Finding, state: Finding.State, *, reason: str, actor: "User") -> Finding:
    finding.state, finding.closed_by, finding.reason = state, actor, reason[:200]
    finding.closed_at = timezone.now()
    finding.save(update_fields=["state", "closed_by", "reason", "closed_at", "updated_at"])
    audit.record(
        actor=actor,
        action=f"finding.{state}",
        subject=finding.node or finding,
        reason=reason,
        before={finding.kind: finding.intended},
        after={finding.kind: finding.observed},
    )
    return finding


def _device(finding: Finding) -> Accelerator:
    live = Accelerator.objects.filter(node=finding.node, slot=finding.slot)
    found = live.exclude(state=Accelerator.State.RETIRED).first()
    if found is None:
        raise FindingNotAcceptableError(
            node=finding.hostname, why=_("the slot holds no live accelerator any more")
        )
    return found


def _model(finding: Finding) -> Any:
    slug = finding.suggestion.get("model")
    if not slug:
        raise FindingNotAcceptableError(
            node=finding.hostname, why=_("the reported name belongs to no known model")
        )
    model = model_named(slug)
    vendor = finding.suggestion.get("vendor", model.vendor)
    if vendor != model.vendor:
        raise FindingNotAcceptableError(
            node=finding.hostname,
            why=_("it has accelerators of {vendor}, and the model {model} is of another").format(
                vendor=vendor, model=slug
            ),
        )
    return model


def _write_serial(finding: Finding, reason: str, actor: "User") -> None:
    serial = finding.suggestion["serial"]
    accelerators.write_serial(
        accelerator_id=_device(finding).pk, serial=serial, reason=reason, actor=actor
    )


def _move(finding: Finding, reason: str, actor: "User") -> None:
    """The serial says which device; it may sit there already, moved by the twin of this finding."""
    slot, serial = finding.suggestion["slot"], finding.suggestion["serial"]
    live = Accelerator.objects.filter(node=finding.node, serial=serial)
    device = live.exclude(state=Accelerator.State.RETIRED).first() or _device(finding)
    if device.slot != slot:
        accelerators.move_accelerator(
            accelerator_id=device.pk, slot=slot, reason=reason, actor=actor
        )


def _replace(finding: Finding, reason: str, actor: "User") -> None:
    accelerators.replace_accelerator(
        accelerator_id=_device(finding).pk,
        serial=finding.suggestion["serial"],
        model=_model(finding),
        reason=reason,
        actor=actor,
    )


def _retire(finding: Finding, reason: str, actor: "User") -> None:
    accelerators.retire_accelerator(accelerator_id=_device(finding).pk, reason=reason, actor=actor)


def _add(finding: Finding, reason: str, actor: "User") -> None:
    if finding.node_id is None:
        return
    accelerators.add_accelerator(
        node_id=finding.node_id,
        slot=finding.slot,
        model=_model(finding),
        serial=finding.suggestion["serial"],
        reason=reason,
        actor=actor,
    )


def _create_node(finding: Finding, reason: str, actor: "User") -> None:
    """Serials that a source names are written down; others come with the agent's first report."""
    suggestion = finding.suggestion
    count = suggestion.get("accelerators", len(suggestion["serials"]))
    if count is None:
        raise FindingNotAcceptableError(
            node=finding.hostname, why=_("no source says how many accelerators it has")
        )
    node = create_node(
        cluster_id=finding.cluster_id,
        hostname=finding.hostname,
        model=_model(finding).slug,
        accelerators=count,
        serials=suggestion["serials"],
        actor=actor,
        reason=reason,
    )
    finding.node = node
    finding.save(update_fields=["node"])


_APPLY: Mapping[str, Apply] = {
    "write-serial": _write_serial,
    "move-accelerator": _move,
    "replace-accelerator": _replace,
    "retire-accelerator": _retire,
    "add-accelerator": _add,
    "create-node": _create_node,
}
