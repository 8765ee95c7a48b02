"""An endpoint of a pool: where it is, what it can do, what its KV fits."""

from typing import Annotated, Literal

import msgspec

from routing.core.specs.base import Count, HttpUrl, Positive, Rate, Seconds, Slug, Strict, ZmqUrl

Role = Literal["prefill", "decode", "both"]
EndpointState = Literal["ready", "draining"]
Transport = Literal["nixl", "mooncake", "mori", "host-staged"]


class KvContract(Strict, frozen=True, kw_only=True):
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


class SpeedPrior(Strict, frozen=True, kw_only=True):
    """Expected speed of a class before anything was measured; see `routing.core.roofline`."""

    prefill_tokens_per_second: Rate
    step_seconds: Seconds
    """Decode step of an empty batch: one pass over the weights, plus overhead."""
    step_seconds_per_sequence: Seconds
    step_seconds_per_context_token: Seconds
    kv_bytes_per_token: Positive


class KvTier(Strict, frozen=True, kw_only=True):
    """A store below the device's memory, from which KV is loaded instead of computed."""

    medium: Slug
    """As the engine's events name it, for example `CPU`."""
    capacity_tokens: Positive | None = None
    seconds_per_token: Seconds | None = None
    """Time to load; `None` is learned, and gives no credit before."""


class KvEvents(Strict, frozen=True, kw_only=True):
    """Where an engine publishes what enters and leaves its cache."""

    endpoint: ZmqUrl
    replay_endpoint: ZmqUrl | None = None
    topic: Annotated[str, msgspec.Meta(max_length=300)] = ""


class EndpointSpec(Strict, frozen=True, kw_only=True):
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
    operator: Slug | None = None
    """Who runs the node; residency rules may ask for it."""
    role_group: Slug | None = None
    """Pairs are made within one group only, where one is stated."""
    data_parallel_rank: Count | None = None
    """Rank behind a shared address, named to the engine by `x-data-parallel-rank`."""
    capabilities: Annotated[tuple[Slug, ...], msgspec.Meta(max_length=50)] = ()
    """What the accelerator can do, for example `fp8` or `memory-141g`; models may require them."""
    adapters: Annotated[tuple[Slug, ...], msgspec.Meta(max_length=500)] = ()
    """Adapters that this endpoint can serve, loaded or not; () serves every adapter of the pool."""
    max_adapters: Positive | None = None
    """Adapters that fit into its memory at once."""
    labels: dict[str, str] = {}
    """Pod labels, for selectors of the weighted policy."""
    watts: Rate | None = None
    """Draw under load, of all its accelerators."""
    tiers: Annotated[tuple[KvTier, ...], msgspec.Meta(max_length=8)] = ()
    """KV stores below the device's memory."""
    kv_events: KvEvents | None = None
    """Where it publishes cache events; `None` asks the engine."""
    bootstrap_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    """SGLang's port for handing over KV."""
