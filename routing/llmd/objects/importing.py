"""Objects of a gateway put into a pool document: what would change, and what would not fit."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from routing.core.document import (
    EndpointSpec,
    ModelSpec,
    PoolDocument,
    encode_document,
    parse_document,
)
from routing.core.refusals import DocumentError
from routing.llmd.notes import Note
from routing.llmd.objects.effects import Effects

DEFAULT_HTTP_PORT = 80


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the document, before and after; `None` is nothing there."""

    pointer: str
    before: Any
    after: Any


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The next version of a document, the same one where nothing changes."""

    document: PoolDocument
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]


def put_into(document: PoolDocument, effects: Effects) -> Imported:
    """Set objectives and rewrites of a document to those of the objects.

    A target that is no model of the document is added as an adapter of its only base model. Raises
    DocumentError when there are several, or when a router would not take the result.
    """
    models, notes = _models(document, effects)
    wanted = msgspec.structs.replace(
        document,
        version=document.version + 1,
        models=models,
        objectives=effects.objectives,
        rewrites=effects.rewrites,
    )
    changes = tuple(_changes(document, wanted))
    after = parse_document(encode_document(wanted)) if changes else document
    notes += [note for endpoint in document.endpoints for note in _misfits(endpoint, effects)]
    return Imported(document=after, changes=changes, notes=effects.notes + tuple(notes))


def _models(document: PoolDocument, effects: Effects) -> tuple[tuple[ModelSpec, ...], list[Note]]:
    known = {model.name for model in document.models}
    bases = [model for model in document.models if model.adapter_of is None]
    models, notes = list(document.models), []
    for place, rule in enumerate(effects.rewrites):
        for index, target in enumerate(rule.targets):
            if target.model in known:
                continue
            pointer = f"/rewrites/{place}/targets/{index}/model"
            if len(bases) != 1:
                text = f"'{target.model}' is no model of the document, and which base it has is"
                names = tuple(model.name for model in bases)
                raise DocumentError(pointer, f"{text} not known; add it to models.", names)
            base = bases[0]
            known.add(target.model)
            models.append(
                ModelSpec(name=target.model, max_model_len=base.max_model_len, adapter_of=base.name)
            )
            text = f"is added to the models as an adapter of {base.name}"
            notes.append(Note(kind="adapted", pointer=pointer, subject=target.model, message=text))
    return tuple(models), notes


def _changes(before: PoolDocument, after: PoolDocument) -> list[Change]:
    """By the name of an objective, the position of a rule, the name of a model."""
    pairs = [
        ("objectives", dict(before.objectives), dict(after.objectives)),
        ("rewrites", _numbered(before.rewrites), _numbered(after.rewrites)),
        ("models", _named(before.models), _named(after.models)),
    ]
    return [
        Change(pointer=f"/{part}/{name}", before=old.get(name), after=new.get(name))
        for part, old, new in pairs
        for name in (*old, *(name for name in new if name not in old))
        if old.get(name) != new.get(name)
    ]


def _numbered(rules: tuple[Any, ...]) -> dict[str, Any]:
    return {str(place): msgspec.to_builtins(rule) for place, rule in enumerate(rules)}


def _named(models: tuple[ModelSpec, ...]) -> dict[str, Any]:
    return {model.name: msgspec.to_builtins(model) for model in models}


def _misfits(endpoint: EndpointSpec, effects: Effects) -> list[Note]:
    """An endpoint that the gateway does not count to the pool."""
    pointer, found = f"/endpoints/{endpoint.id}", []
    ports, labels = effects.target_ports, effects.match_labels or {}
    port = urlsplit(endpoint.url).port or DEFAULT_HTTP_PORT
    if ports is not None and port not in ports:
        text = f"port {port} is not among the target ports {', '.join(map(str, ports))}"
        found.append(Note(kind="kept", pointer=pointer, subject="targetPorts", message=text))
    wrong = [name for name, value in labels.items() if endpoint.labels.get(name, value) != value]
    if wrong:
        text = f"its label {wrong[0]} is another than the pool selects"
        found.append(Note(kind="kept", pointer=pointer, subject="selector", message=text))
    return found
