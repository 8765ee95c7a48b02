"""The pool document: the versioned, immutable configuration that a router reads.

The structs here and in `routing.core.specs` are the one definition. They decode and validate a
document, and the published JSON Schema is made from them. Fields that nobody knows are refused with
the nearest known name.
"""

from typing import Annotated, Any, Literal

import msgspec

from routing.core.refusals import DocumentError, refusal
from routing.core.relations import check_relations
from routing.core.specs.admission import Admission, Band
from routing.core.specs.base import Positive, Slug, Strict
from routing.core.specs.endpoints import (
    EndpointSpec,
    EndpointState,
    KvContract,
    KvEvents,
    KvTier,
    Role,
    SpeedPrior,
    Transport,
)
from routing.core.specs.gateway import Objectives, Rewrite, Rewrites, RewriteTarget
from routing.core.specs.models import ModelSpec, PromptIdentity
from routing.core.specs.policies import (
    ConsortParameters,
    Plugin,
    Policy,
    PolicyName,
    Profile,
    Recording,
    Slo,
)
from routing.core.specs.serving import Disaggregation, Limits
from routing.core.specs.tenants import KeySpec, TenantSpec

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "Admission",
    "Band",
    "ConsortParameters",
    "Disaggregation",
    "DocumentError",
    "EndpointSpec",
    "EndpointState",
    "KeySpec",
    "KvContract",
    "KvEvents",
    "KvTier",
    "Limits",
    "ModelSpec",
    "Plugin",
    "Policy",
    "PolicyName",
    "PoolDocument",
    "Profile",
    "PromptIdentity",
    "Recording",
    "Rewrite",
    "RewriteTarget",
    "Role",
    "Slo",
    "SpeedPrior",
    "TenantSpec",
    "Transport",
    "document_schema",
    "encode_document",
    "parse_document",
]

MAX_DOCUMENT_BYTES = 8 * 1024 * 1024


class PoolDocument(Strict, frozen=True, kw_only=True):
    """Everything a router needs to serve one pool."""

    schema_version: Literal[1] = 1
    pool: Slug
    version: Positive
    author: Slug
    created_at: Annotated[str, msgspec.Meta(max_length=40)]
    """RFC 3339, UTC."""
    currency: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")] | None = None
    role_mode: Literal["unified", "disaggregated"]
    models: Annotated[tuple[ModelSpec, ...], msgspec.Meta(min_length=1, max_length=200)]
    endpoints: Annotated[tuple[EndpointSpec, ...], msgspec.Meta(max_length=4096)]
    speed_classes: dict[str, SpeedPrior]
    policy: Policy = msgspec.field(default_factory=Policy)
    prompt_identity: PromptIdentity = msgspec.field(default_factory=PromptIdentity)
    disaggregation: Disaggregation = msgspec.field(default_factory=Disaggregation)
    admission: Admission = msgspec.field(default_factory=Admission)
    limits: Limits = msgspec.field(default_factory=Limits)
    slo: Slo = msgspec.field(default_factory=Slo)
    recording: Recording = msgspec.field(default_factory=Recording)
    objectives: Objectives = {}
    rewrites: Rewrites = ()
    tenants: tuple[TenantSpec, ...] = ()
    keys: Annotated[tuple[KeySpec, ...], msgspec.Meta(max_length=100_000)] = ()


def parse_document(raw: bytes) -> PoolDocument:
    """Decode and validate a whole document.

    Raises DocumentError with a pointer to the first field that is wrong and what is allowed there.
    """
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise DocumentError(
            "", f"The document has {len(raw)} bytes; at most {MAX_DOCUMENT_BYTES} are read."
        )
    try:
        document = msgspec.json.decode(raw, type=PoolDocument)
    except msgspec.ValidationError as error:
        raise refusal(str(error), document_schema()) from error
    except msgspec.DecodeError as error:
        raise DocumentError("", f"The document is not JSON: {error}.") from error
    check_relations(document)
    return document


def encode_document(document: PoolDocument) -> bytes:
    """Write a document with sorted keys, so that equal documents are equal bytes."""
    return msgspec.json.encode(document, order="sorted")


def document_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document, for publication and for editors."""
    return msgspec.json.schema(PoolDocument)
