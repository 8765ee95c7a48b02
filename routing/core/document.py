"""The pool document: the versioned, immutable configuration that a router reads.

The structs below are the one definition. They decode and validate a document, and the published
JSON Schema is made from them. Fields that nobody knows are refused with the nearest known name.
"""

import difflib
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

Role = Literal["prefill", "decode", "both"]
EndpointState = Literal["ready", "draining"]
PolicyName = Literal["random", "round-robin", "least-requests", "consort"]
Transport = Literal["nixl", "mooncake", "mori", "host-staged"]

Slug = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
Timeout = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
# Whole numbers up to 2^53 fit into a float without loss; JSON itself has no bound.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
HttpUrl = Annotated[str, msgspec.Meta(pattern=r"^http://[^/\s]+$", max_length=300)]

MAX_DOCUMENT_BYTES = 8 * 1024 * 1024


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every part: immutable, and a field that is not defined here is an error."""


class KvContract(_Strict, frozen=True, kw_only=True):
    """What two endpoints must agree on to hand over KV. `None` is unknown, never "any"."""

    engine: Slug
    engine_version: Slug | None = None
    connector: Slug | None = None
    connector_version: Slug | None = None
    transport: Transport | None = None
    model_revision: Slug | None = None
    kv_dtype: Slug | None = None
    block_size_tokens: Positive | None = None
    layout: Slug | None = None
    kv_heads: Positive | None = None
    head_size: Positive | None = None
    tensor_parallel: Positive | None = None
    pipeline_parallel: Positive | None = None
    attention_backend: Slug | None = None
    fabric: Slug | None = None
    """Network that both ends must share, for example a RoCE fabric's name."""
    staging_device: Slug | None = None
    """`cpu` when the KV passes through host memory on its way."""
    transfer_bytes_per_second: Rate | None = None
    """What this endpoint's link moves, one direction."""


class SpeedPrior(_Strict, frozen=True, kw_only=True):
    """Expected speed of a class before anything was measured; see `routing.core.roofline`."""

    prefill_tokens_per_second: Rate
    step_seconds: Seconds
    """Decode step of an empty batch: one pass over the weights, plus overhead."""
    step_seconds_per_sequence: Seconds
    step_seconds_per_context_token: Seconds
    kv_bytes_per_token: Positive


class EndpointSpec(_Strict, frozen=True, kw_only=True):
    """One address that takes requests, in one life of its process."""

    id: Slug
    url: HttpUrl
    instance: Slug
    """Changes with each start of the process; a changed instance has an empty cache."""
    engine: Literal["vllm", "sglang"]
    role: Role
    state: EndpointState = "ready"
    vendor: Slug
    speed_class: Slug
    """Key into `speed_classes`."""
    node: Slug
    site: Slug
    jurisdiction: Slug | None = None
    kv_capacity_tokens: Positive | None = None
    block_size_tokens: Positive
    max_sequences: Positive = 256
    max_model_len: Positive | None = None
    kv_contract: KvContract
    price_per_hour: Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)?$", max_length=40)] | None = (
        None
    )
    """Decimal as text, in the document's currency."""
    ramp_seconds: Seconds = 0.0
    """Time over which a fresh endpoint grows to its full share of requests."""


class ModelSpec(_Strict, frozen=True, kw_only=True):
    """A model name that clients may ask for."""

    name: Slug
    max_model_len: Positive
    revision: Slug | None = None
    adapter_of: Slug | None = None
    """Name of the base model when this name is an adapter."""


class ConsortParameters(_Strict, frozen=True, kw_only=True):
    """Weights of the price; defaults and their reasons are in `routing.core.pricing`."""

    harm_weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    capacity_weight: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    money_weight: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    tie_share: Share = 0.03
    leave_home_factor: Annotated[float, msgspec.Meta(ge=0)] = 4.0
    """How many times the recompute time leaving the longest hit has to gain."""


class Policy(_Strict, frozen=True, kw_only=True):
    """How an endpoint is chosen. `parameters` are read by `consort` only."""

    name: PolicyName = "consort"
    parameters: ConsortParameters = msgspec.field(default_factory=ConsortParameters)


class PromptIdentity(_Strict, frozen=True, kw_only=True):
    """How a prompt becomes block keys. `bytes` needs no tokenizer."""

    mode: Literal["bytes"] = "bytes"
    chunk_bytes: Annotated[int, msgspec.Meta(ge=16, le=65536)] = 256
    bytes_per_token: Rate = 4.0
    """First guess; learned from the engines' usage afterwards."""


class Disaggregation(_Strict, frozen=True, kw_only=True):
    """Whether and when a prompt is computed on another endpoint than its output."""

    protocol: Literal["nixl"] = "nixl"
    allow_staging: bool = True
    """Use pairs that are compatible only through host memory."""
    allow_unknown_pairs: bool = False
    minimum_uncached_tokens: Count = 256
    """Below this a prompt is always computed where it is decoded."""


class Admission(_Strict, frozen=True, kw_only=True):
    """When a request is queued or refused instead of sent."""

    maximum_wait_seconds: Seconds = 120.0
    """Expected wait over which a request is refused with 429."""


class TenantSpec(_Strict, frozen=True, kw_only=True):
    """Limits of a tenant; `None` is no limit at this level."""

    tenant: Slug
    concurrency: Positive | None = None
    requests_per_second: Rate | None = None
    jurisdictions: tuple[Slug, ...] | None = None
    """Where this tenant's requests and KV may be; an endpoint without one is out."""


class KeySpec(_Strict, frozen=True, kw_only=True):
    """An inference key: who may ask, never the secret itself."""

    id: Slug
    sha256: Sha256
    tenant: Slug
    project: Slug
    models: tuple[Slug, ...] | None = None
    expires_at: Seconds | None = None
    """Unix time; `None` never expires."""


class Limits(_Strict, frozen=True, kw_only=True):
    """Bounds that protect a router."""

    body_bytes: Positive = 32 * 1024 * 1024
    concurrent_requests: Positive = 4096
    first_token_timeout_seconds: Timeout = 300.0
    stall_timeout_seconds: Timeout = 60.0
    connect_timeout_seconds: Timeout = 2.0
    attempts: Annotated[int, msgspec.Meta(ge=1, le=10)] = 3


class PoolDocument(_Strict, frozen=True, kw_only=True):
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
    tenants: tuple[TenantSpec, ...] = ()
    keys: Annotated[tuple[KeySpec, ...], msgspec.Meta(max_length=100_000)] = ()


class DocumentError(Exception):
    """A document was refused. `pointer` is a JSON pointer to the field, "" for the whole."""

    def __init__(self, pointer: str, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.allowed = allowed


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
        raise _refusal(str(error)) from error
    except msgspec.DecodeError as error:
        raise DocumentError("", f"The document is not JSON: {error}.") from error
    _check_relations(document)
    return document


def encode_document(document: PoolDocument) -> bytes:
    """Write a document with sorted keys, so that equal documents are equal bytes."""
    return msgspec.json.encode(document, order="sorted")


def document_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document, for publication and for editors."""
    return msgspec.json.schema(PoolDocument)


_PATH = re.compile(r" - at `(?P<path>[^`]+)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")


def _refusal(text: str) -> DocumentError:
    path = _PATH.search(text)
    pointer = _pointer(path["path"]) if path else ""
    message = _PATH.sub("", text)
    unknown = _UNKNOWN.search(message)
    if not unknown:
        return DocumentError(pointer, f"{message}.")
    known = sorted(_fields_at(pointer))
    near = difflib.get_close_matches(unknown["name"], known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return DocumentError(
        f"{pointer}/{unknown['name']}", f"Unknown field '{unknown['name']}'.{hint}", tuple(known)
    )


def _pointer(path: str) -> str:
    steps = (match["field"] or match["index"] for match in _STEP.finditer(path.removeprefix("$")))
    return "".join(f"/{step}" for step in steps)


def _fields_at(pointer: str) -> set[str]:
    """Names that the struct at a pointer knows; the schema tells which struct stands there."""
    schema = document_schema()
    node: dict[str, Any] = _resolve(schema, schema)
    for step in pointer.split("/")[1:]:
        below = node.get("properties", {}).get(step) or node.get("items")
        below = below or node.get("additionalProperties") or {}
        node = _resolve(schema, below)
    return set(node.get("properties", {}))


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    for option in node.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolve(schema, option)
    if "$ref" in node:
        found: dict[str, Any] = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        return found
    return node


def _check_relations(document: PoolDocument) -> None:
    """What types alone cannot say: ids are unique, and what is named exists."""
    _unique("/endpoints", "id", [endpoint.id for endpoint in document.endpoints])
    _unique("/endpoints", "url", [endpoint.url for endpoint in document.endpoints])
    _unique("/models", "name", [model.name for model in document.models])
    _unique("/keys", "sha256", [key.sha256 for key in document.keys])
    _unique("/tenants", "tenant", [tenant.tenant for tenant in document.tenants])
    classes = tuple(sorted(document.speed_classes))
    for position, endpoint in enumerate(document.endpoints):
        _check_url(f"/endpoints/{position}/url", endpoint.url)
        if endpoint.speed_class not in document.speed_classes:
            raise DocumentError(
                f"/endpoints/{position}/speed_class",
                f"Speed class '{endpoint.speed_class}' is not among speed_classes.",
                classes,
            )
        if document.role_mode == "unified" and endpoint.role != "both":
            raise DocumentError(
                f"/endpoints/{position}/role",
                f"A unified pool has endpoints of role 'both' only; this one is '{endpoint.role}'.",
                ("both",),
            )
    names = {model.name for model in document.models}
    for position, model in enumerate(document.models):
        if model.adapter_of is not None and model.adapter_of not in names:
            raise DocumentError(
                f"/models/{position}/adapter_of",
                f"Base model '{model.adapter_of}' is not among the models.",
                tuple(sorted(names)),
            )


def _check_url(pointer: str, url: str) -> None:
    """A host and perhaps a port: what a connection needs, and nothing that would be ignored."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.username is not None or parts.query or parts.fragment:
        raise DocumentError(
            pointer, f"'{url}' is no address of an engine.", ("http://HOST", "http://HOST:1-65535")
        )


def _unique(pointer: str, field: str, values: list[str]) -> None:
    seen: dict[str, int] = {}
    for position, value in enumerate(values):
        if value in seen:
            raise DocumentError(
                f"{pointer}/{position}/{field}",
                f"'{value}' stands at position {seen[value]} already; each {field} is used once.",
            )
        seen[value] = position
