"""Whether an object is one that an API server would take, without one.

Kinds of Kubernetes go through the client's typed models, which forbid fields that they do not know.
Kinds of others go through the small schemas in `schemas/`: the fields that we set, from the CRDs of
the versions in the file. `x-typed` names the client's model of a part, such as a Pod.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import yaml
from kubernetes import client

from controlplane.serving.renderers.base import Manifest
from tests.controlplane.serving.renderers.groups import TYPED

_SCHEMAS = Path(__file__).parent / "schemas"


class UnknownFieldError(Exception):
    """A field is not one of its kind, or has another type."""


def check(manifest: Manifest) -> None:
    """Raises UnknownFieldError; KeyError for a kind that nobody described."""
    kind = (manifest["apiVersion"], manifest["kind"])
    try:
        if kind in TYPED:
            TYPED[kind].model_validate(manifest)
            return
        schema = _schemas()[kind]
        jsonschema.Draft202012Validator(schema).validate(manifest)
        for model, part in _typed_parts(schema, manifest, schema):
            getattr(client, model).model_validate(part)
    except (pydantic.ValidationError, jsonschema.ValidationError) as error:
        raise UnknownFieldError(f"{manifest['kind']}: {error}") from error


@cache
def _schemas() -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path in sorted(_SCHEMAS.glob("*.yaml")):
        content = yaml.safe_load(path.read_text("utf-8"))
        found[content["apiVersion"], content["kind"]] = content["schema"]
    return found


def _typed_parts(
    schema: dict[str, Any], value: Any, root: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Parts that are of one of the client's models, with its name."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "x-typed" in schema:
        yield schema["x-typed"], value
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in schema.get("properties", {}):
                yield from _typed_parts(schema["properties"][key], one, root)
    elif isinstance(value, list):
        for one in value:
            yield from _typed_parts(schema.get("items", {}), one, root)
