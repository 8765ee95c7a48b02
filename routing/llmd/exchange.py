"""A file of either kind as the other: an EndpointPickerConfig as the part of a pool document that
it is about, and such a part, or a whole pool document, as an EndpointPickerConfig.

What the other side has no word for is told in notes, never dropped in silence.
"""

from typing import Any

import msgspec

from routing.core.document import (
    MAX_DOCUMENT_BYTES,
    Admission,
    Policy,
    encode_document,
    parse_document,
)
from routing.core.refusals import DocumentError, refusal
from routing.llmd import yaml_text
from routing.llmd.conversion import convert, convert_config
from routing.llmd.model import KIND, EndpointPickerConfig
from routing.llmd.notes import Note
from routing.llmd.reading import read, tree_of
from routing.llmd.writing import config_of

_PARTS = ("policy", "admission")
_ABOUT_ENDPOINTS = "endpoints, models, tenants and keys are no part of an EndpointPickerConfig"


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The other file as plain objects, and what to know about it."""

    tree: dict[str, Any]
    notes: tuple[Note, ...]
    is_llmd: bool
    """Whether the result is an EndpointPickerConfig."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    policy: Policy = msgspec.field(default_factory=Policy)
    admission: Admission = msgspec.field(default_factory=Admission)


def exchange(raw: bytes, *, into: bytes | None = None, base: bytes | None = None) -> Exchanged:
    """Convert a file to the other kind. Raises DocumentError with a pointer to what is wrong.

    `into` is a pool document that a configuration is put into, as its next version. `base` is the
    configuration that a pool document once came from: what has no counterpart here is kept of it.
    """
    if _is_llmd(raw):
        if base is not None:
            raise DocumentError("", f"The file is a {KIND}; a base is for a pool document.")
        return _from_llmd(raw, into)
    if into is not None:
        raise DocumentError("", f"Only a {KIND} can be put into a pool document.")
    return _to_llmd(raw, base)


def _is_llmd(raw: bytes) -> bool:
    """By the kind; an empty text is a configuration, with upstream's defaults."""
    tree = _tree(raw)
    if tree is None:
        return True
    if isinstance(tree, dict) and ("kind" in tree or "apiVersion" in tree):
        return True
    if isinstance(tree, dict) and not tree.keys().isdisjoint(_PARTS):
        return False
    raise DocumentError(
        "", f"The file is neither a {KIND} nor a pool document, nor has it a policy.", _PARTS
    )


def _tree(raw: bytes) -> Any:
    """JSON, which may be as large as a document, or YAML."""
    if not raw.lstrip().startswith(b"{"):
        return yaml_text.load(raw)
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise DocumentError(
            "", f"The file has {len(raw)} bytes; at most {MAX_DOCUMENT_BYTES} are read."
        )
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # YAML has objects in braces too.
        return yaml_text.load(raw)


def _from_llmd(raw: bytes, into: bytes | None) -> Exchanged:
    report = convert(raw)
    if into is None:
        part = _Part(policy=report.policy, admission=report.admission)
        return Exchanged(tree=_plain(part), notes=report.notes, is_llmd=False)
    before = parse_document(into)
    document = msgspec.structs.replace(
        before, version=before.version + 1, policy=report.policy, admission=report.admission
    )
    checked = parse_document(encode_document(document))
    return Exchanged(tree=_plain(checked), notes=report.notes, is_llmd=False)


def _to_llmd(raw: bytes, base: bytes | None) -> Exchanged:
    part, notes = _part_of(raw)
    config = config_of(part.policy, part.admission, base=None if base is None else read(base))
    notes += _lost(part, config)
    return Exchanged(tree=tree_of(config), notes=tuple(notes), is_llmd=True)


def _part_of(raw: bytes) -> tuple[_Part, list[Note]]:
    tree = _tree(raw)
    if "endpoints" in tree:
        document = parse_document(msgspec.json.encode(tree))
        note = Note(kind="kept", pointer="", subject=document.pool, message=_ABOUT_ENDPOINTS)
        return _Part(policy=document.policy, admission=document.admission), [note]
    try:
        return msgspec.convert(tree, _Part), []
    except msgspec.ValidationError as error:
        raise refusal(str(error), msgspec.json.schema(_Part)) from error


def _lost(part: _Part, config: EndpointPickerConfig) -> list[Note]:
    """Fields that do not come back from the configuration as they were."""
    back = convert_config(config)
    found = []
    for name, ours, theirs in (
        ("policy", part.policy, back.policy),
        ("admission", part.admission, back.admission),
    ):
        for field in ours.__struct_fields__:
            if getattr(ours, field) != getattr(theirs, field):
                message = "llm-d has no counterpart, or another bound"
                pointer = f"/{name}/{field}"
                found.append(Note(kind="kept", pointer=pointer, subject=field, message=message))
    return found


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return plain
