"""Field names and types of the built-in kinds, from the models of the official client."""

import copy
from typing import Any

import pydantic
from kubernetes import client

from tests.kubernetes.fake.errors import ApiError, cause, invalid
from tests.kubernetes.fake.kinds import Kind

Object = dict[str, Any]
MODELS = {
    "HorizontalPodAutoscaler": client.V2HorizontalPodAutoscaler,
    "Event": client.CoreV1Event,
    "ResourceClaim": client.ResourceV1ResourceClaim,
}


def checked(kind: Kind, item: Object, *, strict: bool) -> Object:
    """The object without unknown fields.

    Raises ApiError 400 for wrong types (and for unknown fields when strict), 422 for missing ones.
    """
    errors = _errors(kind, item)
    unknown = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    if strict and unknown:
        listed = ", ".join(f'unknown field "{_dotted(path)}"' for path in unknown)
        raise ApiError(400, f"strict decoding error: {listed}")
    missing, wrong = [], []
    for error in errors:
        if error["type"] == "missing" or (error["input"] is None):
            missing.append(cause(_dotted(error["loc"]), "Required value", "FieldValueRequired"))
        elif error["type"] != "extra_forbidden" and not _quantity(error):
            wrong.append(f"{_dotted(error['loc'])}: {error['msg']}")
    if wrong:
        raise ApiError(
            400,
            f"{kind.name} in version {kind.version!r} cannot be handled as a "
            f"{kind.name}: json: cannot unmarshal: {'; '.join(wrong)}",
        )
    if missing:
        raise invalid(kind.name, kind.group, item["metadata"].get("name", ""), missing)
    return _pruned(item, unknown)


def unknown_fields(kind: Kind, item: Object) -> list[str]:
    """Paths of fields that the kind does not have."""
    return [_dotted(e["loc"]) for e in _errors(kind, item) if e["type"] == "extra_forbidden"]


def wrong_types(kind: Kind, item: Object) -> list[str]:
    """Paths of values of another type than the kind has there, with what is wrong."""
    return [
        f"{_dotted(error['loc'])}: {error['msg']}"
        for error in _errors(kind, item)
        if error["type"] not in {"extra_forbidden", "missing"} and not _quantity(error)
    ]


def template_errors(template: Any) -> tuple[list[str], list[str]]:
    """Unknown fields, and wrong values, of a Pod template inside a custom object."""
    unknown, wrong = [], []
    for error in _errors_of(client.V1PodTemplateSpec, template):
        if error["type"] == "extra_forbidden":
            unknown.append(_dotted(error["loc"]))
        elif not _quantity(error):
            wrong.append(f"{_dotted(error['loc'])}: {error['msg']}")
    return unknown, wrong


def _errors(kind: Kind, item: Object) -> list[Any]:
    model = MODELS.get(kind.name) or getattr(client, f"V1{kind.name}")
    # managedFields and server-made times are the fake's own.
    meta = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    return _errors_of(model, item | {"metadata": meta})


def _errors_of(model: Any, value: Any) -> list[Any]:
    try:
        model.model_validate(value)
    except pydantic.ValidationError as error:
        return list(error.errors())
    return []


def _quantity(error: Any) -> bool:
    """Amounts may be numbers on the wire; the client's models know text only."""
    within = {"limits", "requests", "capacity", "allocatable", "hard", "sizeLimit", "cpu"}
    number = isinstance(error["input"], int | float) and not isinstance(error["input"], bool)
    return number and bool(within & set(error["loc"]))


def _pruned(item: Object, paths: list[Any]) -> Object:
    if not paths:
        return item
    item = copy.deepcopy(item)
    for path in paths:
        inside: Any = item
        try:
            for part in path[:-1]:
                inside = inside[part]
            del inside[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
    return item


def _dotted(path: Any) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
