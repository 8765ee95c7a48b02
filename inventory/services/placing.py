"""What several services share: looking things up by name, saving with sentences, placing a node."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inventory.errors import (
    NodeExistsError,
    SerialInUseError,
    SlotTakenError,
    SlugTakenError,
    UnknownModelError,
    UnknownVendorError,
    ValueNotAllowedError,
)
from inventory.models import Accelerator, AcceleratorModel, Cluster, Node, NodeType
from inventory.vendors import vendors

_HOSTNAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_HOSTNAME_RULE = gettext_lazy(
    "Use letters, digits, '-', '_' and '.'; the first and the last are a letter or a digit."
)


def require_vendor(slug: str) -> str:
    """The slug, if a vendor file has it. Raises UnknownVendorError."""
    if slug not in vendors():
        raise UnknownVendorError(vendor=slug, allowed=", ".join(vendors()))
    return slug


def model_named(slug: str) -> AcceleratorModel:
    """The accelerator model with the slug. Raises UnknownModelError."""
    model = AcceleratorModel.objects.filter(slug=slug).first()
    if model is None:
        raise UnknownModelError(model=slug)
    return model


def check_values(row: models.Model) -> None:
    """Raise ValueNotAllowedError for the first column that cannot hold its value.

    Rules of the database are not asked here: it decides them itself at the write, without a race.
    """
    foreign = {field.name for field in row._meta.fields if field.remote_field}  # noqa: SLF001 - Django's public model API
    try:
        row.clean_fields(exclude=foreign)
    except ValidationError as error:
        field, details = next(iter(error.message_dict.items()))
        raise ValueNotAllowedError(field=field, why=details[0]) from error


@contextmanager
def sentences(row: models.Model) -> Iterator[None]:
    """Write inside a savepoint; what the database refuses becomes an error with a sentence.

    Raises SlugTakenError, NodeExistsError, SlotTakenError or SerialInUseError, and for every other
    rule ValueNotAllowedError with the rule's sentence.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        diagnostics = getattr(error.__cause__, "diag", None)
        name = getattr(diagnostics, "constraint_name", None) or ""
        detail = getattr(diagnostics, "message_detail", None) or ""
        raise _refusal(row, name, detail) or error from error


def refused_value(error: IntegrityError) -> str:
    """The value that a unique rule refused, as the database writes it; empty for other rules."""
    diagnostics = getattr(error.__cause__, "diag", None)
    return _last_value(getattr(diagnostics, "message_detail", None) or "")


def _refusal(row: models.Model, name: str, detail: str) -> Exception | None:
    if "_slug_" in name:
        return SlugTakenError(slug=_last_value(detail))
    if isinstance(row, Node | Accelerator) and "_live_" in name:
        node = row if isinstance(row, Node) else row.node
        return _taken(node, name, _last_value(detail))
    for rule in row._meta.constraints:  # noqa: SLF001 - Django's public model API
        if rule.name == name:
            return ValueNotAllowedError(
                field=type(row).__name__, why=rule.get_violation_error_message()
            )
    return None


def _taken(node: Node, name: str, value: str) -> Exception:
    if "_slot_" in name:
        return SlotTakenError(slot=value, node=node.hostname)
    if "_serial_" in name:
        return _serial_in_use(vendor=node.vendor, serial=value)
    return NodeExistsError(node=node.hostname, cluster=node.cluster.slug)


def _last_value(detail: str) -> str:
    """Last value of PostgreSQL's "Key (vendor, serial)=(nvidia, X) already exists."."""
    return detail.partition(")=(")[2].rpartition(")")[0].rpartition(", ")[2]


def _serial_in_use(*, vendor: str, serial: str) -> SerialInUseError:
    holder = (
        Accelerator.objects.exclude(state=Accelerator.State.RETIRED)
        .filter(vendor=vendor, serial=serial)
        .select_related("node")
        .first()
    )
    return SerialInUseError(serial=serial, vendor=vendor, accelerator=str(holder or serial))


def node_type_for(model: AcceleratorModel, accelerators: int) -> NodeType:
    """The type of node with so many accelerators of the model, made when it is not there yet."""
    found, _is_created = NodeType.objects.get_or_create(
        slug=f"{model.slug}-x{accelerators}",
        defaults={
            "name": f"{accelerators} x {model.name}",
            "vendor": model.vendor,
            "accelerator_model": model,
            "accelerator_count": accelerators,
        },
    )
    return found


def planned_node(
    *,
    cluster: Cluster,
    hostname: str,
    node_type: NodeType,
    serials: Sequence[str],
    state: str,
    details: Mapping[str, Any],
) -> tuple[Node, list[Accelerator]]:
    """A node and one accelerator per slot, slots from 0, not stored yet; missing serials are empty.

    Raises ValueNotAllowedError.
    """
    if not _HOSTNAME.match(hostname):
        raise ValueNotAllowedError(
            field="hostname",
            why=_("'{value}' is not a hostname. {rule}").format(
                value=hostname[:100], rule=_HOSTNAME_RULE
            ),
        )
    now = timezone.now()
    node = Node(
        cluster=cluster,
        hostname=hostname,
        node_type=node_type,
        vendor=node_type.vendor,
        state=state,
        state_since=now,
        delivered_at=None if state in Node.NOT_DELIVERED else now,
        **details,
    )
    check_values(node)
    padded = [*serials, *[""] * (node_type.accelerator_count - len(serials))]
    devices = [
        Accelerator(
            node=node,
            model=node_type.accelerator_model,
            vendor=node.vendor,
            slot=slot,
            serial=serial,
        )
        for slot, serial in enumerate(padded)
    ]
    return node, devices
