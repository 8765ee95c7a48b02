"""Builds pool documents from plain values; no query, no clock, no I/O."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import msgspec

from routing.core.document import (
    Admission,
    ConsortParameters,
    DocumentError,
    EndpointSpec,
    KeySpec,
    KvContract,
    ModelSpec,
    Policy,
    PoolDocument,
    Recording,
    Rewrite,
    Slo,
    SpeedPrior,
    TenantSpec,
    encode_document,
    parse_document,
)
from routing.core.refusals import refusal
from routing.core.relations import check_rewrites
from routing.core.specs.gateway import Objectives, Rewrites

UNPUBLISHED = "-"
"""Stands where version, author and time stand once a document is published."""

WAITING_REQUESTS: Final = 1000
"""Most requests that wait in each router for a pool that says nothing of it: room for a burst.
`queue_bytes` bounds long prompts."""


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
    highest_priority: int = 0


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
    recording: Mapping[str, Any] = field(default_factory=dict)
    slo_ttft_seconds: float | None = None
    slo_tpot_seconds: float | None = None
    admission: Mapping[str, Any] = field(default_factory=dict)
    """What people stated of it; see `admission_of` for the rest."""
    objectives: Mapping[str, int] = field(default_factory=dict)
    rewrites: Sequence[Mapping[str, Any]] = ()
    """Rules as in the document; see `models_of` for targets that are not the pool's model."""
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
        models=models_of(
            ModelSpec(name=facts.model, max_model_len=facts.max_model_len, revision=facts.revision),
            rewrites_of(facts.rewrites),
        ),
        endpoints=tuple(
            _endpoint(endpoint, facts.ramp_seconds)
            for endpoint in sorted(facts.endpoints, key=lambda endpoint: endpoint.id)
        ),
        speed_classes=dict(sorted(facts.speed_classes.items())),
        policy=policy_of(facts.policy, facts.policy_parameters),
        slo=slo_of(facts.slo_ttft_seconds, facts.slo_tpot_seconds),
        admission=admission_of(facts.policy, facts.admission),
        recording=recording_of(facts.recording),
        objectives=objectives_of(facts.objectives),
        rewrites=rewrites_of(facts.rewrites),
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


def recording_of(values: Mapping[str, Any]) -> Recording:
    """What is recorded of decisions, from a pool's values.

    Raises DocumentError with the field that is wrong.
    """
    known = tuple(field.name for field in msgspec.structs.fields(Recording))
    try:
        return msgspec.convert(dict(values), Recording)
    except msgspec.ValidationError as error:
        raise DocumentError("/recording", f"{error}.", known) from error


def slo_of(ttft_seconds: float | None, tpot_seconds: float | None) -> Slo:
    """Targets of a request. Raises DocumentError with a pointer."""
    targets = {"ttft_seconds": ttft_seconds, "tpot_seconds": tpot_seconds}
    try:
        return msgspec.convert(targets, Slo)
    except msgspec.ValidationError as error:
        raise _refusal_below("/slo", error, Slo) from error


def admission_of(policy: str, stated: Mapping[str, Any]) -> Admission:
    """When requests wait and when they are refused, from what people stated of it.

    Nothing said of `queue_requests`, `WAITING_REQUESTS` may wait under `consort` and none under
    another policy: its peers choose as they are published, without a queue of ours. Raises
    DocumentError with a pointer, and what is allowed there.
    """
    waiting = {"queue_requests": WAITING_REQUESTS} if policy == "consort" else {}
    try:
        return msgspec.convert({**waiting, **stated}, Admission)
    except msgspec.ValidationError as error:
        raise _refusal_below("/admission", error, Admission) from error


def objectives_of(stated: Mapping[str, int]) -> dict[str, int]:
    """Priorities by name. Raises DocumentError with a pointer."""
    try:
        found: dict[str, int] = msgspec.convert(dict(stated), Objectives)
    except msgspec.ValidationError as error:
        raise _refusal_below("/objectives", error, Objectives) from error
    return dict(sorted(found.items()))


def rewrites_of(stated: Sequence[Mapping[str, Any]]) -> tuple[Rewrite, ...]:
    """Rules for names of models. Raises DocumentError with a pointer, and what is allowed there."""
    try:
        rules: tuple[Rewrite, ...] = msgspec.convert(list(stated), Rewrites)
    except msgspec.ValidationError as error:
        raise _refusal_below("/rewrites", error, Rewrites) from error
    check_rewrites(rules, {target.model for rule in rules for target in rule.targets})
    return rules


def check_writable(objectives: Mapping[str, int], rewrites: Sequence[Mapping[str, Any]]) -> None:
    """Raise DocumentError for a name that the console's lines (`rulelines`) cannot say.

    Routers would take it, but a person who saves the page would change the rule.
    """
    for name in objectives:
        _check_name(f"/objectives/{name}", name)
    for place, rule in enumerate(rewrites):
        names = [*(rule.get("models") or []), *(one["model"] for one in rule["targets"])]
        for name in names:
            _check_name(f"/rewrites/{place}", name)


def _check_name(pointer: str, name: str) -> None:
    if name == "*" or "," in name or "->" in name or any(sign.isspace() for sign in name):
        raise DocumentError(
            pointer, f"the name '{name}' has a space, a comma or an arrow, or stands for every name"
        )


def models_of(base: ModelSpec, rewrites: Sequence[Rewrite]) -> tuple[ModelSpec, ...]:
    """The pool's model, and each other target of a rule as an adapter of it.

    Engines of a pool run one model: what else they serve under a name are adapters.
    """
    targets = {target.model for rule in rewrites for target in rule.targets} - {base.name}
    return (
        base,
        *(
            ModelSpec(name=name, max_model_len=base.max_model_len, adapter_of=base.name)
            for name in sorted(targets)
        ),
    )


def names_of(model: str, rewrites: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every name by which clients may ask for a pool whose rules these are."""
    rules = rewrites_of(rewrites)
    names = [name for rule in rules for name in rule.models]
    targets = [target.model for rule in rules for target in rule.targets]
    return list(dict.fromkeys([model, *names, *targets]))


def _refusal_below(place: str, error: msgspec.ValidationError, part: Any) -> DocumentError:
    found = refusal(str(error), msgspec.json.schema(part))
    return DocumentError(f"{place}{found.pointer}", found.message, found.allowed)


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
        highest_priority=facts.highest_priority,
    )


def _tenants(jurisdictions: Mapping[str, Sequence[str]]) -> Iterable[TenantSpec]:
    for tenant, places in sorted(jurisdictions.items()):
        yield TenantSpec(tenant=tenant, jurisdictions=tuple(places) or None)
