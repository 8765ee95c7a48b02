"""The objects as they are written, as far as they say something to a router.

Unknown fields are ignored, as everywhere in what others write; a wrong type is refused.
"""

from typing import Annotated, Literal

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
ModelName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
FailureMode = Literal["FailOpen", "FailClose"]

POOL_GROUP = "inference.networking.k8s.io"
MODEL_GROUPS = ("llm-d.ai", "inference.networking.x-k8s.io")
"""Objectives and rewrites have one schema under both; the first is the newer one."""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts."""


class Metadata(Part, frozen=True, kw_only=True):
    """Who an object is, and since when."""

    name: Name
    namespace: Name = "default"
    creation_timestamp: Annotated[str, msgspec.Meta(max_length=40)] | None = None
    """RFC 3339; `None` before it is applied."""


class TargetPort(Part, frozen=True, kw_only=True):
    """A port of every pod of a pool; each is an endpoint of its own."""

    number: Port


class Selector(Part, frozen=True, kw_only=True):
    """Pods by labels, in the pool's own namespace."""

    match_labels: Annotated[dict[str, str], msgspec.Meta(min_length=1, max_length=64)]


class PickerReference(Part, frozen=True, kw_only=True):
    """Who picks endpoints of a pool."""

    name: Name
    group: str = ""
    kind: str = "Service"
    port: TargetPort | None = None
    """Needed where the picker is a Service."""
    failure_mode: FailureMode = "FailClose"


class PoolSpec(Part, frozen=True, kw_only=True):
    """`spec` of an InferencePool."""

    selector: Selector
    target_ports: Annotated[tuple[TargetPort, ...], msgspec.Meta(min_length=1, max_length=8)]
    app_protocol: Literal["http", "kubernetes.io/h2c"] = "http"
    endpoint_picker_ref: PickerReference | None = None


class Backend(Part, frozen=True, kw_only=True):
    """Where a rule of a route sends its part of the requests."""

    name: Name
    group: str = ""
    kind: str = "Service"
    namespace: Name | None = None
    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1


class Timeouts(Part, frozen=True, kw_only=True):
    """Of a rule, as Gateway API durations; `None` leaves the gateway's own."""

    request: str | None = None
    backend_request: str | None = None


class RouteRule(Part, frozen=True, kw_only=True):
    """A rule of a route; what it matches is the gateway's business."""

    backend_refs: Annotated[tuple[Backend, ...], msgspec.Meta(max_length=16)] = ()
    timeouts: Timeouts | None = None


class RouteSpec(Part, frozen=True, kw_only=True):
    """`spec` of an HTTPRoute."""

    rules: Annotated[tuple[RouteRule, ...], msgspec.Meta(max_length=16)] = ()


class PoolReference(Part, frozen=True, kw_only=True):
    """The InferencePool that an object is about."""

    name: Name
    group: str = POOL_GROUP
    kind: str = "InferencePool"


class ObjectiveSpec(Part, frozen=True, kw_only=True):
    """`spec` of an InferenceObjective."""

    pool_ref: PoolReference
    priority: Priority | None = None
    """Unset is 0; below 0 is sheddable."""


class ModelMatch(Part, frozen=True, kw_only=True):
    """A model name that is asked for."""

    value: ModelName
    type: Literal["Exact"] = "Exact"


class RewriteMatch(Part, frozen=True, kw_only=True):
    """One of the conditions of a rule."""

    model: ModelMatch


class ModelTarget(Part, frozen=True, kw_only=True):
    """A model that a rule sends requests to."""

    model_rewrite: ModelName
    weight: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class RewriteRule(Part, frozen=True, kw_only=True):
    """A rule of a rewrite; no match is every request."""

    matches: Annotated[tuple[RewriteMatch, ...], msgspec.Meta(max_length=64)] | None = None
    targets: Annotated[tuple[ModelTarget, ...], msgspec.Meta(min_length=1, max_length=64)]


class RewriteSpec(Part, frozen=True, kw_only=True):
    """`spec` of an InferenceModelRewrite."""

    pool_ref: PoolReference
    rules: Annotated[tuple[RewriteRule, ...], msgspec.Meta(min_length=1, max_length=64)]


class InferencePool(Part, frozen=True, kw_only=True):
    """A set of pods, and who picks among them."""

    metadata: Metadata
    spec: PoolSpec


class HttpRoute(Part, frozen=True, kw_only=True):
    """How a gateway sends requests to pools."""

    metadata: Metadata
    spec: RouteSpec = msgspec.field(default_factory=RouteSpec)


class InferenceObjective(Part, frozen=True, kw_only=True):
    """A priority under a name."""

    metadata: Metadata
    spec: ObjectiveSpec


class InferenceModelRewrite(Part, frozen=True, kw_only=True):
    """Rules for names of models."""

    metadata: Metadata
    spec: RewriteSpec


GatewayObject = InferencePool | HttpRoute | InferenceObjective | InferenceModelRewrite
