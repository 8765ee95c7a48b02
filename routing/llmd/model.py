"""EndpointPickerConfig as it is written; what a text leaves out stays out when it is written again.

Unknown fields are refused with their path. Parameters of plugins are checked by `catalogue`.
"""

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

KIND: Final = "EndpointPickerConfig"
API_VERSION: Final = "llm-d.ai/v1alpha1"
OLD_VERSION: Final = "inference.networking.x-k8s.io/v1alpha1"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Quantity = str | int
Duration = Annotated[str, msgspec.Meta(max_length=40)]
T = TypeVar("T")
Many = msgspec.Meta(max_length=500)


class Part(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """Base of all parts."""


class PluginEntry(Part, frozen=True, kw_only=True):
    """A plugin with its parameters; `name` is its type when it is left out."""

    type: Name
    name: Name | UnsetType = UNSET
    parameters: dict[str, Any] | UnsetType | None = UNSET

    @property
    def known_as(self) -> str:
        return self.type if isinstance(self.name, UnsetType) else self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Its parameters, {} when it has none."""
        return self.parameters if isinstance(self.parameters, dict) else {}


class PluginRef(Part, frozen=True, kw_only=True):
    """A plugin by its name; the weight is a scorer's, 1 when it is left out."""

    plugin_ref: Name
    weight: int | float | UnsetType = UNSET


class ProfileEntry(Part, frozen=True, kw_only=True):
    """A scheduling profile."""

    name: Name
    plugins: Annotated[tuple[PluginRef, ...], Many] | UnsetType = UNSET

    @property
    def refs(self) -> tuple[PluginRef, ...]:
        """Its plugins, () when it has none."""
        return () if isinstance(self.plugins, UnsetType) else self.plugins


class Reference(Part, frozen=True, kw_only=True):
    """A plugin by its name."""

    plugin_ref: Name


class Source(Part, frozen=True, kw_only=True):
    """A data source with its extractors."""

    plugin_ref: Name
    extractors: Annotated[tuple[Reference, ...], Many] | UnsetType = UNSET


class Discovery(Part, frozen=True, kw_only=True):
    """Who finds endpoints: the plugin itself, or in `llm-d.ai/v1` one below `endpoints`."""

    plugin_ref: Name | UnsetType = UNSET
    endpoints: Reference | UnsetType = UNSET


class CrossReplica(Part, frozen=True, kw_only=True):
    """What replicas of a picker tell each other, as `llm-d.ai/v1` writes it."""

    syncer_plugin_ref: Name | UnsetType = UNSET
    sync_interval: Duration | UnsetType = UNSET
    publish_timeout: Duration | UnsetType = UNSET


class DataLayer(Part, frozen=True, kw_only=True):
    """Where signals come from."""

    inject_defaults: bool | UnsetType = UNSET
    sources: Annotated[tuple[Source, ...], Many] | UnsetType = UNSET
    discovery: Discovery | UnsetType = UNSET
    peer_discovery: Reference | UnsetType = UNSET
    cross_replica_syncer_plugin_ref: Name | UnsetType = UNSET
    cross_replica_sync_interval: Duration | UnsetType = UNSET
    cross_replica_publish_timeout: Duration | UnsetType = UNSET
    cross_replica: CrossReplica | UnsetType = UNSET


class PriorityBand(Part, frozen=True, kw_only=True):
    """Bounds of one priority."""

    priority: int | UnsetType = UNSET
    max_bytes: Quantity | UnsetType = UNSET
    max_requests: Quantity | UnsetType = UNSET
    fairness_policy_ref: Name | UnsetType = UNSET
    ordering_policy_ref: Name | UnsetType = UNSET


class FlowControl(Part, frozen=True, kw_only=True):
    """Queueing in front of a saturated pool."""

    max_bytes: Quantity | UnsetType = UNSET
    max_requests: Quantity | UnsetType = UNSET
    default_request_ttl: Duration | UnsetType = msgspec.field(
        default=UNSET, name="defaultRequestTTL"
    )
    no_endpoint_request_ttl: Duration | UnsetType = msgspec.field(
        default=UNSET, name="noEndpointRequestTTL"
    )
    default_priority_band: PriorityBand | UnsetType = UNSET
    default_negative_priority_band: PriorityBand | UnsetType = UNSET
    priority_bands: Annotated[tuple[PriorityBand, ...], Many] | UnsetType = UNSET
    usage_limit_policy_plugin_ref: Name | UnsetType = UNSET
    saturation_detector: Reference | UnsetType = UNSET
    enable_eviction: bool | UnsetType = UNSET


class RequestHandler(Part, frozen=True, kw_only=True):
    """Which parsers read a request."""

    parsers: Annotated[tuple[Reference, ...], Many] | UnsetType = UNSET


class Detector(Part, frozen=True, kw_only=True):
    """The deprecated place of a saturation detector: a plugin, or before that its thresholds."""

    plugin_ref: Name | UnsetType = UNSET
    queue_depth_threshold: int | UnsetType = UNSET
    kv_cache_util_threshold: float | UnsetType = UNSET
    metrics_staleness_threshold: Duration | UnsetType = UNSET


class EndpointPickerConfig(Part, frozen=True, kw_only=True):
    """The whole; `saturationDetector`, `parser` and `data` at the top are deprecated places."""

    api_version: Literal[
        "llm-d.ai/v1alpha1", "llm-d.ai/v1", "inference.networking.x-k8s.io/v1alpha1"
    ]
    kind: Literal["EndpointPickerConfig"]
    feature_gates: Annotated[tuple[str, ...], Many] | UnsetType = UNSET
    plugins: Annotated[tuple[PluginEntry, ...], Many] | UnsetType = UNSET
    scheduling_profiles: Annotated[tuple[ProfileEntry, ...], Many] | UnsetType = UNSET
    data_layer: DataLayer | UnsetType = UNSET
    flow_control: FlowControl | UnsetType = UNSET
    request_handler: RequestHandler | UnsetType = UNSET
    saturation_detector: Detector | UnsetType = UNSET
    parser: Reference | UnsetType = UNSET
    data: DataLayer | UnsetType = UNSET

    @property
    def entries(self) -> tuple[PluginEntry, ...]:
        """Its plugins, () when it has none."""
        return () if isinstance(self.plugins, UnsetType) else self.plugins

    @property
    def profiles(self) -> tuple[ProfileEntry, ...]:
        """Its profiles, () when it has none."""
        found = self.scheduling_profiles
        return () if isinstance(found, UnsetType) else found


def given(value: T | UnsetType, default: T) -> T:
    """A field, or what stands for it when it is left out."""
    return default if isinstance(value, UnsetType) else value
