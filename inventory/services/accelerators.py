"""Single devices of a node: cordon, replace, add, move, retire."""

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from inventory.errors import AcceleratorTransitionError, OtherVendorError
from inventory.models import Accelerator, AcceleratorModel, Node
from inventory.services.nodes import locked_node
from inventory.services.placing import check_values, sentences

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

State = Accelerator.State
_ASIDE = 32_767
"""A slot that no machine has: the largest value of the column."""


@transaction.atomic
def cordon_accelerator(*, accelerator_id: UUID, reason: str, actor: "User") -> Accelerator:
    """Stop new placements on one device. Raises AcceleratorTransitionError."""
    accelerator = _locked(accelerator_id, actor=actor, action="inventory.cordon_node")
    _require_state(accelerator, State.READY)
    return _move(accelerator, State.CORDONED, reason=reason, actor=actor, event="cordoned")


@transaction.atomic
def uncordon_accelerator(*, accelerator_id: UUID, reason: str, actor: "User") -> Accelerator:
    """Let placements come back to a device. Raises AcceleratorTransitionError."""
    accelerator = _locked(accelerator_id, actor=actor, action="inventory.cordon_node")
    _require_state(accelerator, State.CORDONED)
    return _move(accelerator, State.READY, reason=reason, actor=actor, event="uncordoned")


@transaction.atomic
def retire_accelerator(*, accelerator_id: UUID, reason: str, actor: "User") -> Accelerator:
    """Take a device off the books; slot and serial become free, the row stays.

    Retiring a retired device changes nothing.
    """
    accelerator = _locked(accelerator_id, actor=actor, action="inventory.change_accelerator")
    if accelerator.state == State.RETIRED:
        return accelerator
    accelerator.retired_at = timezone.now()
    return _move(accelerator, State.RETIRED, reason=reason, actor=actor, event="retired")


@transaction.atomic
def add_accelerator(
    *, node_id: UUID, slot: int, model: AcceleratorModel, serial: str, reason: str, actor: "User"
) -> Accelerator:
    """Put a device into a free slot of a node.

    Raises OtherVendorError, SlotTakenError, SerialInUseError or ValueNotAllowedError.
    """
    node = locked_node(node_id)
    permissions.require(actor, "inventory.change_accelerator", node)
    return _add(node, slot=slot, model=model, serial=serial, reason=reason, actor=actor)


@transaction.atomic
def replace_accelerator(
    *, accelerator_id: UUID, serial: str, model: AcceleratorModel | None = None, reason: str,
    actor: "User",
) -> Accelerator:  # fmt: skip
    """Retire a device and put another one into its slot; the model stays unless it is given.

    Returns the device that came. Raises AcceleratorTransitionError for a retired device.
    """
    old = _locked(accelerator_id, actor=actor, action="inventory.change_accelerator")
    _require_state(old, State.READY, State.CORDONED)
    old.retired_at = timezone.now()
    _move(old, State.RETIRED, reason=reason, actor=actor, event="retired")
    return _add(
        old.node, slot=old.slot, model=model or old.model, serial=serial, reason=reason, actor=actor
    )


@transaction.atomic
def move_accelerator(*, accelerator_id: UUID, slot: int, reason: str, actor: "User") -> Accelerator:
    """Write down that a device sits in another slot of its node.

    If a device is noted there, the two change places. Raises ValueNotAllowedError.
    """
    accelerator = _locked(accelerator_id, actor=actor, action="inventory.change_accelerator")
    _require_state(accelerator, State.READY, State.CORDONED)
    before, other = accelerator.slot, _in_slot(accelerator.node, slot)
    if other is not None and other.pk != accelerator.pk:
        # A unique index is checked row by row, so the other one waits outside of every real slot.
        Accelerator.objects.filter(pk=other.pk).update(slot=_ASIDE)
    accelerator.slot = slot
    check_values(accelerator)
    with sentences(accelerator):
        accelerator.save(update_fields=["slot", "updated_at"])
    if other is not None and other.pk != accelerator.pk:
        Accelerator.objects.filter(pk=other.pk).update(slot=before)
    _record(accelerator, "moved", reason, actor, before={"slot": before}, after={"slot": slot})
    return accelerator


@transaction.atomic
def write_serial(*, accelerator_id: UUID, serial: str, reason: str, actor: "User") -> Accelerator:
    """Write down the serial of a device. Raises SerialInUseError or ValueNotAllowedError."""
    accelerator = _locked(accelerator_id, actor=actor, action="inventory.change_accelerator")
    before, accelerator.serial = accelerator.serial, serial
    check_values(accelerator)
    with sentences(accelerator):
        accelerator.save(update_fields=["serial", "updated_at"])
    _record(
        accelerator, "changed", reason, actor, before={"serial": before}, after={"serial": serial}
    )
    return accelerator


def _locked(accelerator_id: UUID, *, actor: "User", action: str) -> Accelerator:
    """The device, locked after its node: one order everywhere, so that nobody waits in a circle."""
    node_id = Accelerator.objects.values_list("node_id", flat=True).get(pk=accelerator_id)
    node = locked_node(node_id)
    accelerator = (
        Accelerator.objects.select_for_update(no_key=True, of=("self",))
        .select_related("model")
        .get(pk=accelerator_id)
    )
    accelerator.node = node
    permissions.require(actor, action, accelerator)
    return accelerator


def _in_slot(node: Node, slot: int) -> Accelerator | None:
    live = Accelerator.objects.filter(node=node, slot=slot).exclude(state=State.RETIRED)
    return live.first()


def _add(
    node: Node, *, slot: int, model: AcceleratorModel, serial: str, reason: str, actor: "User"
) -> Accelerator:
    if model.vendor != node.vendor:
        raise OtherVendorError(
            node=node.hostname, vendor=node.vendor, model=model.slug, other_vendor=model.vendor
        )
    accelerator = Accelerator(node=node, slot=slot, model=model, vendor=node.vendor, serial=serial)
    check_values(accelerator)
    with sentences(accelerator):
        accelerator.save(force_insert=True)
    after = {"slot": slot, "serial": serial, "model": model.slug}
    _record(accelerator, "added", reason, actor, before={}, after=after)
    return accelerator


def _require_state(accelerator: Accelerator, *allowed: Accelerator.State) -> None:
    if accelerator.state not in allowed:
        raise AcceleratorTransitionError(
            accelerator=str(accelerator),
            state=State(accelerator.state),
            allowed=", ".join(str(state.label) for state in allowed),
            allowed_from=[state.value for state in allowed],
        )


def _move(
    accelerator: Accelerator, state: Accelerator.State, *, reason: str, actor: "User", event: str
) -> Accelerator:
    before, accelerator.state = accelerator.state, state
    accelerator.save(update_fields=["state", "retired_at", "updated_at"])
    _record(
        accelerator, event, reason, actor, before={"state": before}, after={"state": state.value}
    )
    outbox.emit(f"consort.accelerator.{event}", subject=accelerator, data={"reason": reason})
    return accelerator


def _record(
    accelerator: Accelerator,
    event: str,
    reason: str,
    actor: "User",
    *,
    before: dict[str, object],
    after: dict[str, object],
) -> None:
    """One entry, on the node: its history is where people look for a device."""
    slot = accelerator.slot
    audit.record(
        actor=actor,
        action=f"accelerator.{event}",
        subject=accelerator.node,
        reason=reason,
        before={"slot": slot, **before} if before else None,
        after={"slot": slot, **after},
        message=f"slot {slot}",
    )
