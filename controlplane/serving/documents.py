"""Builds pool documents from plain values; no query, no clock, no I/O."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from routing.core.document import (
    ConsortParameters,
    DocumentError,
    EndpointSpec,
    KeySpec,
    KvContract,
    ModelSpec,
    Policy,
    PoolDocument,
    SpeedPrior,
    TenantSpec,
    encode_document,
    parse_document,
)

UNPUBLISHED = "-"
"""Stands where version, author and time stand once a document is published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFacts:
    """An endpoint as rows know it."""

    id: str
    url: str
    instance: str
    engine: str
    role: str
    draining: bool
    vendor: str
    speed_class: str
    node: str
    site: str
    jurisdiction: str | None
    kv_capacity_tokens: int | None
    block_size_tokens: int
    max_model_len: int | None
    kv_contract: Mapping[str, Any]
    price_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """An inference key as rows know it; no models means every model."""

    id: str
    sha256: str
    tenant: str
    project: str
    models: Sequence[str]
    expires_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """A pool with everything that its document says."""

    slug: str
    role_mode: str
    currency: str | None
    model: str
    revision: str | None
    max_model_len: int
    policy: str
    policy_parameters: Mapping[str, Any]
    ramp_seconds: float
    speed_classes: Mapping[str, SpeedPrior]
    endpoints: Sequence[EndpointFacts]
    keys: Sequence[KeyFacts] = ()
    tenants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Jurisdictions by tenant; an empty list is no limit."""


def build(facts: PoolFacts) -> PoolDocument:
    """The document without version, author and time; equal facts give equal documents.

    Raises DocumentError with a pointer if a value is not allowed.
    """
    document = PoolDocument(
        pool=facts.slug,
        version=1,
        author=UNPUBLISHED,
        created_at=UNPUBLISHED,
        currency=facts.currency,
        role_mode=facts.role_mode,  # type: ignore[arg-type]  # read back and validated below
        models=(
            ModelSpec(name=facts.model, max_model_len=facts.max_model_len, revision=facts.revision),
        ),
        endpoints=tuple(
            _endpoint(endpoint, facts.ramp_seconds)
            for endpoint in sorted(facts.endpoints, key=lambda endpoint: endpoint.id)
        ),
        speed_classes=dict(sorted(facts.speed_classes.items())),
        policy=policy_of(facts.policy, facts.policy_parameters),
        tenants=tuple(_tenants(facts.tenants)),
        keys=tuple(_key(key) for key in sorted(facts.keys, key=lambda key: key.id)),
    )
    return parse_document(encode_document(document))


def policy_of(name: str, parameters: Mapping[str, Any]) -> Policy:
    """A policy from its name and parameters.

    Raises DocumentError with a pointer, and the names that are allowed.
    """
    known = {field.name for field in msgspec.structs.fields(ConsortParameters)}
    unknown = sorted(set(parameters) - known)
    if unknown:
        raise DocumentError(
            f"/policy/parameters/{unknown[0]}",
            f"Unknown parameter '{unknown[0]}'.",
            tuple(sorted(known)),
        )
    try:
        return msgspec.convert({"name": name, "parameters": dict(parameters)}, Policy)
    except msgspec.ValidationError as error:
        raise DocumentError("/policy", f"{error}.", tuple(sorted(known))) from error


def published(
    document: PoolDocument, *, version: int, author: str, created_at: str
) -> PoolDocument:
    """The same document under a version."""
    return msgspec.structs.replace(document, version=version, author=author, created_at=created_at)


def sha256(document: PoolDocument) -> str:
    """SHA-256 of the document's canonical bytes, as a router reports it."""
    return hashlib.sha256(encode_document(document)).hexdigest()


def _endpoint(facts: EndpointFacts, ramp_seconds: float) -> EndpointSpec:
    return EndpointSpec(
        id=facts.id,
        url=facts.url,
        instance=facts.instance,
        engine="sglang" if facts.engine == "sglang" else "vllm",
        role=facts.role,  # type: ignore[arg-type]  # read back and validated by `build`
        state="draining" if facts.draining else "ready",
        vendor=facts.vendor,
        speed_class=facts.speed_class,
        node=facts.node,
        site=facts.site,
        jurisdiction=facts.jurisdiction,
        kv_capacity_tokens=facts.kv_capacity_tokens,
        block_size_tokens=facts.block_size_tokens,
        max_model_len=facts.max_model_len,
        kv_contract=msgspec.convert(dict(facts.kv_contract), KvContract),
        price_per_hour=_decimal_text(facts.price_per_hour),
        ramp_seconds=ramp_seconds,
    )


def _decimal_text(price: Decimal | None) -> str | None:
    return None if price is None else f"{price:.4f}"


def _key(facts: KeyFacts) -> KeySpec:
    return KeySpec(
        id=facts.id,
        sha256=facts.sha256,
        tenant=facts.tenant,
        project=facts.project,
        models=tuple(facts.models) or None,
        expires_at=facts.expires_at,
    )


def _tenants(jurisdictions: Mapping[str, Sequence[str]]) -> Iterable[TenantSpec]:
    for tenant, places in sorted(jurisdictions.items()):
        yield TenantSpec(tenant=tenant, jurisdictions=tuple(places) or None)
