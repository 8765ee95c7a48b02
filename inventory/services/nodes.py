"""The life of a node: planned, provisioning, ready, cordoned, draining, maintenance, retired."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from inventory.errors import (
    NodeHeldError,
    NodeNotReadyError,
    NodeTransitionError,
    NodeWithoutAcceleratorsError,
    ValueNotAllowedError,
)
from inventory.models import Accelerator, Cluster, Finding, Node
from inventory.services.placing import (
    check_values,
    model_named,
    node_type_for,
    planned_node,
    sentences,
)

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

State = Node.State
MOST_ACCELERATORS = 64
CHANGEABLE = ("rack", "owner", "operator", "tags", "storage_bytes_per_second")


class NodeDetails(TypedDict, total=False):
    """What may be said about a node beside its accelerators."""

    serials: Sequence[str]
    """In the order of the slots; those that are missing stay empty until an observation."""
    state: str
    """planned, provisioning or ready (the default)."""
    rack: str
    owner: str
    operator: str
    tags: Sequence[str]


@transaction.atomic
def create_node(
    *,
    cluster_id: UUID,
    hostname: str,
    model: str,
    accelerators: int,
    actor: "User",
    reason: str = "",
    **details: Unpack[NodeDetails],
) -> Node:
    """Add a node with accelerators of one model, slots from 0.

    `model` is the slug of an accelerator model. Raises UnknownModelError,
    NodeWithoutAcceleratorsError, NodeExistsError, SerialInUseError, ValueNotAllowedError or
    NotPermittedError.
    """
    permissions.require(actor, "inventory.add_node")
    serials, state = details.pop("serials", ()), details.pop("state", State.READY)
    if not 1 <= accelerators <= MOST_ACCELERATORS:
        raise NodeWithoutAcceleratorsError(node=hostname, count=accelerators)
    _check_serials(serials, accelerators)
    node, devices = planned_node(
        cluster=Cluster.objects.get(pk=cluster_id),
        hostname=hostname,
        node_type=node_type_for(model_named(model), accelerators),
        serials=serials,
        state=state,
        details=details,
    )
    with sentences(node):
        node.save(force_insert=True)
        Accelerator.objects.bulk_create(devices)
    audit.record(
        actor=actor,
        action="node.create",
        subject=node,
        reason=reason,
        after={"state": state, "node_type": node.node_type.slug, "cluster": node.cluster.slug},
    )
    return node


@transaction.atomic
def change_node(*, node_id: UUID, reason: str, actor: "User", **changes: Any) -> Node:
    """Change rack, owner, operator, tags or the speed of the storage.

    Raises ValueNotAllowedError or NotPermittedError.
    """
    node = locked_node(node_id)
    permissions.require(actor, "inventory.change_node", node)
    before = {field: getattr(node, field) for field in CHANGEABLE}
    for field in set(changes) & set(CHANGEABLE):
        setattr(node, field, changes[field])
    check_values(node)
    node.save(update_fields=[*CHANGEABLE, "updated_at"])
    after = {field: getattr(node, field) for field in CHANGEABLE}
    audit.record(
        actor=actor, action="node.change", subject=node, reason=reason, before=before, after=after
    )
    return node


@transaction.atomic
def cordon_node(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Stop new placements on a node; what runs there goes on.

    A node that is draining stops draining. A second caller waits for the first. Raises
    NodeNotReadyError or NotPermittedError.
    """
    node = locked_node(node_id)
    permissions.require(actor, "inventory.cordon_node", node)
    if node.state not in (State.READY, State.DRAINING):
        raise NodeNotReadyError(**_facts(node, (State.READY, State.DRAINING)))
    return _move(node, State.CORDONED, reason=reason, actor=actor, event="cordoned")


@transaction.atomic
def uncordon_node(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Let placements come back to a cordoned node. Raises NodeTransitionError."""
    node = locked_node(node_id)
    permissions.require(actor, "inventory.cordon_node", node)
    _require_state(node, State.CORDONED)
    return _move(node, State.READY, reason=reason, actor=actor, event="uncordoned")


@transaction.atomic
def drain_node(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Ask that what runs on the node is moved away; nothing is placed there meanwhile.

    The event `consort.node.draining` tells those who placed something. Raises NodeTransitionError.
    """
    node = locked_node(node_id)
    permissions.require(actor, "inventory.drain_node", node)
    _require_state(node, State.READY, State.CORDONED)
    return _move(node, State.DRAINING, reason=reason, actor=actor, event="draining")


@transaction.atomic
def start_maintenance(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Hand a cordoned or drained node to the people who repair it. Raises NodeTransitionError."""
    node = locked_node(node_id)
    permissions.require(actor, "inventory.drain_node", node)
    _require_state(node, State.CORDONED, State.DRAINING)
    _require_free(node)
    return _move(node, State.MAINTENANCE, reason=reason, actor=actor, event="maintenance_started")


@transaction.atomic
def finish_maintenance(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Bring a node back from maintenance to ready. Raises NodeTransitionError."""
    node = locked_node(node_id)
    permissions.require(actor, "inventory.drain_node", node)
    _require_state(node, State.MAINTENANCE)
    return _move(node, State.READY, reason=reason, actor=actor, event="maintenance_finished")


@transaction.atomic
def provision_node(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Say that a planned node is being set up. Raises NodeTransitionError."""
    node = locked_node(node_id)
    permissions.require(actor, "inventory.change_node", node)
    _require_state(node, State.PLANNED)
    return _move(node, State.PROVISIONING, reason=reason, actor=actor, event="provisioning")


@transaction.atomic
def deliver_node(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Take a planned node into service; from here on it counts as delivered."""
    node = locked_node(node_id)
    permissions.require(actor, "inventory.change_node", node)
    _require_state(node, State.PLANNED, State.PROVISIONING)
    node.delivered_at = timezone.now()
    node.save(update_fields=["delivered_at"])
    return _move(node, State.READY, reason=reason, actor=actor, event="delivered")


@transaction.atomic
def retire_node(*, node_id: UUID, reason: str, actor: "User") -> Node:
    """Take a node and its accelerators off the books; the rows stay for the ledger.

    Its hostname and serials become free, its open findings are resolved. Retiring a retired node
    changes nothing. Raises NodeHeldError while something is placed on it, or NotPermittedError.
    """
    node = locked_node(node_id)
    permissions.require(actor, "inventory.retire_node", node)
    if node.state == State.RETIRED:
        return node
    _require_free(node)
    now = timezone.now()
    node.retired_at = now
    Accelerator.objects.filter(node=node).exclude(state=Accelerator.State.RETIRED).update(
        state=Accelerator.State.RETIRED, retired_at=now, updated_at=now
    )
    Finding.objects.filter(node=node, state=Finding.State.OPEN).update(
        state=Finding.State.RESOLVED, closed_at=now, closed_by=actor, reason=reason[:200]
    )
    return _move(node, State.RETIRED, reason=reason, actor=actor, event="retired")


def _check_serials(serials: Sequence[str], accelerators: int) -> None:
    """Raise ValueNotAllowedError for more serials than accelerators, or one that is there twice."""
    if len(serials) > accelerators:
        why = _("There are {serials} serials for {accelerators} accelerators.")
        raise ValueNotAllowedError(
            field="serials", why=why.format(serials=len(serials), accelerators=accelerators)
        )
    known = [serial for serial in serials if serial]
    for serial in known:
        if known.count(serial) > 1:
            why = _("The serial {serial} is there twice.").format(serial=serial)
            raise ValueNotAllowedError(field="serials", why=why)


def locked_node(node_id: UUID) -> Node:
    """The node, locked until the end of the transaction; rows that point at it can be added."""
    return Node.objects.select_for_update(no_key=True, of=("self",)).get(pk=node_id)


def _require_state(node: Node, *allowed: Node.State) -> None:
    if node.state not in allowed:
        raise NodeTransitionError(**_facts(node, allowed))


def _facts(node: Node, allowed: Sequence[Node.State]) -> dict[str, Any]:
    return {
        "node": node.hostname,
        "state": State(node.state),
        "allowed": ", ".join(str(state.label) for state in allowed),
        "allowed_from": [state.value for state in allowed],
    }


def _require_free(node: Node) -> None:
    """Ask everybody named in settings whether they hold the node; inventory itself cannot know.

    Its accelerators are locked first, in the order of their ids: whoever is about to place
    something on them is waited for, and then heard.
    """
    locked = Accelerator.objects.select_for_update(no_key=True).filter(node=node).order_by("pk")
    list(locked.values_list("pk"))
    holders = [
        sentence for path in settings.NODE_HOLDERS if (sentence := import_string(path)(node))
    ]
    if holders:
        raise NodeHeldError(node=node.hostname, holders="; ".join(holders))


def _move(node: Node, state: Node.State, *, reason: str, actor: "User", event: str) -> Node:
    before = node.state
    node.state = state
    node.state_since = timezone.now()
    node.save(update_fields=["state", "state_since", "retired_at", "updated_at"])
    audit.record(
        actor=actor,
        action=f"node.{event}",
        subject=node,
        reason=reason,
        before={"state": before},
        after={"state": state.value},
    )
    outbox.emit(f"consort.node.{event}", subject=node, data={"reason": reason})
    return node
