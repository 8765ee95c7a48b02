"""From texts to checked objects: several YAML documents, JSON, and `List` objects.

A pointer begins with the place of the document in its text: `/1/spec/targetPorts/0/number`.
"""

from typing import Any

import msgspec

from routing.core.refusals import DocumentError, refusal
from routing.llmd import yaml_text
from routing.llmd.notes import Note
from routing.llmd.objects.model import (
    MODEL_GROUPS,
    POOL_GROUP,
    GatewayObject,
    HttpRoute,
    InferenceModelRewrite,
    InferenceObjective,
    InferencePool,
)

MOST_OBJECTS = 1000

_VERSIONS: dict[str, tuple[type[GatewayObject], tuple[str, ...]]] = {
    "InferencePool": (InferencePool, (f"{POOL_GROUP}/v1",)),
    "HTTPRoute": (
        HttpRoute,
        ("gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"),
    ),
    "InferenceObjective": (
        InferenceObjective,
        tuple(f"{group}/v1alpha2" for group in MODEL_GROUPS),
    ),
    "InferenceModelRewrite": (
        InferenceModelRewrite,
        tuple(f"{group}/v1alpha2" for group in MODEL_GROUPS),
    ),
}
KINDS = tuple(_VERSIONS)


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """An object and where it was read: `pointer` leads to it."""

    pointer: str
    item: GatewayObject


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, in order, and what to know about it."""

    placed: tuple[Placed, ...]
    notes: tuple[Note, ...] = ()


def read(raw: str | bytes, *, source: str = "") -> Objects:
    """Read the objects of one text. Raises DocumentError with a pointer to what is wrong.

    `source` is put before every pointer; it names the text among several. Objects of other kinds
    are noted and left out.
    """
    placed: list[Placed] = []
    notes: list[Note] = []
    for pointer, tree in _trees(yaml_text.load_all(raw), source):
        found = _object(tree, pointer, notes)
        if found is not None:
            placed.append(Placed(pointer=pointer, item=found))
    if len(placed) > MOST_OBJECTS:
        raise DocumentError(source, f"The text has more than {MOST_OBJECTS} objects.")
    return Objects(placed=tuple(placed), notes=tuple(notes))


def joined(parts: list[Objects]) -> Objects:
    """The objects of several texts as those of one."""
    return Objects(
        placed=tuple(placed for part in parts for placed in part.placed),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _trees(documents: list[Any], source: str) -> list[tuple[str, Any]]:
    """Documents with their pointers; a `List` is its items."""
    found = []
    for place, tree in enumerate(documents):
        pointer = f"{source}/{place}"
        if tree is None:
            continue
        items = tree.get("items") if isinstance(tree, dict) else None
        if isinstance(items, list) and str(tree.get("kind", "")).endswith("List"):
            found += [(f"{pointer}/items/{index}", item) for index, item in enumerate(items)]
        else:
            found.append((pointer, tree))
    return found


def _object(tree: Any, pointer: str, notes: list[Note]) -> GatewayObject | None:
    if not isinstance(tree, dict) or not isinstance(tree.get("kind"), str):
        raise DocumentError(pointer, "An object with a kind is wanted here.", KINDS)
    kind = tree["kind"]
    if kind not in _VERSIONS:
        message = "says nothing to a router"
        notes.append(Note(kind="kept", pointer=pointer, subject=kind[:80], message=message))
        return None
    form, versions = _VERSIONS[kind]
    version = tree.get("apiVersion")
    if version not in versions:
        text = f"apiVersion {str(version)[:80]!r} of {kind} is not read."
        raise DocumentError(f"{pointer}/apiVersion", text, versions)
    if version != versions[0]:
        renamed = f"now {versions[0]}"
        where = f"{pointer}/apiVersion"
        notes.append(Note(kind="renamed", pointer=where, subject=str(version), message=renamed))
    try:
        found: GatewayObject = msgspec.convert(tree, form)
    except msgspec.ValidationError as error:
        told = refusal(str(error), msgspec.json.schema(form))
        raise DocumentError(pointer + told.pointer, told.message, told.allowed) from error
    _check(found, pointer)
    return found


def _check(found: GatewayObject, pointer: str) -> None:
    """What types alone cannot say."""
    if isinstance(found, InferencePool):
        _check_pool(found, pointer)
    elif isinstance(found, InferenceModelRewrite):
        _check_rewrite(found, pointer)


def _check_pool(pool: InferencePool, pointer: str) -> None:
    numbers = [port.number for port in pool.spec.target_ports]
    for place, number in enumerate(numbers):
        if number in numbers[:place]:
            where = f"{pointer}/spec/targetPorts/{place}/number"
            raise DocumentError(where, f"Port {number} stands twice; each is an endpoint.")
    picker = pool.spec.endpoint_picker_ref
    if picker is not None and picker.kind == "Service" and picker.port is None:
        where = f"{pointer}/spec/endpointPickerRef/port"
        raise DocumentError(where, "A picker that is a Service needs its port.")


def _check_rewrite(rewrite: InferenceModelRewrite, pointer: str) -> None:
    for place, rule in enumerate(rewrite.spec.rules):
        where = f"{pointer}/spec/rules/{place}/targets"
        if len({target.weight is None for target in rule.targets}) > 1:
            raise DocumentError(where, "All targets of a rule have a weight, or none has.")
        names = [target.model_rewrite for target in rule.targets]
        for index, name in enumerate(names):
            if name in names[:index]:
                text = f"'{name[:80]}' is a target of this rule already; add the weights up."
                raise DocumentError(f"{where}/{index}/modelRewrite", text)
