"""What renderers take and give, in nobody's own words; plain values, no Django.

An `EngineGroup` is one or more equal engines: same model, role, device and command. A target asks
for one engine at a time (`replicas=1`, one host name); an export asks for groups. `PoolLayout` adds
what belongs to all of a pool's groups: the gateway, the picker, the way requests come in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from routing.core.document import Admission, Policy

Manifest = dict[str, Any]
Role = Literal["prefill", "decode", "both"]
VolumeKind = Literal["pvc", "node-path", "oci"]

ENGINE_CONTAINER = "engine"
POD_FIELDS: Mapping[str, str] = {
    "POD_IP": "status.podIP",
    "POD_NAME": "metadata.name",
    "NODE_NAME": "spec.nodeName",
}
"""Variables that every engine's container has, with the field of its Pod that each one is.

A word of `argv` or a value of `env` may hold `$(POD_IP)` and the like: the kubelet fills them in.
"""


class RenderRefusedError(Exception):
    """The format cannot express what is asked for; `field` is the field that stands in the way."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports of an engine inside its Pod; None: the engine does not listen there."""

    http: int = 8000
    kv_events: int | None = None
    kv_replay: int | None = None
    side_channel: int | None = None
    """Where other engines ask for KV: NIXL's side channel, SGLang's bootstrap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedResource:
    """Devices by a device plugin's resource name and a count."""

    name: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """Devices by dynamic resource allocation: a class, a count and conditions in CEL."""

    device_class: str
    count: int = 1
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A taint that an engine may stand beside."""

    key: str
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Empty: every effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretVariable:
    """A variable whose value stays in a Secret of the namespace; only the reference is ours."""

    variable: str
    secret: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactVolume:
    """Where the model's files come from; mounted read-only."""

    kind: VolumeKind
    source: str
    """Name of the claim, absolute path on the node, or reference of the image with its digest."""
    mount_path: str = "/models"
    sub_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGroup:
    """Equal engines of one role of a pool. Empty text and None: nothing is written."""

    name: str
    namespace: str
    pool: str
    role: Role
    replicas: int | None = 1
    """None: an autoscaler owns the number, so it is left out."""
    hostnames: tuple[str, ...] = ()
    """Nodes on which the engines may run; empty: any node that has the devices."""
    nodes: int = 1
    """Nodes that one engine spans; above 1 its Pods start and end together."""
    model: str
    """Name under which the model is served."""
    model_name: str
    """Name by which the weights are found."""
    revision: str = ""
    engine: str
    vendor: str = ""
    accelerator: str = ""
    """Short name of the accelerator model."""
    image: str
    argv: tuple[str, ...]
    worker_argv: tuple[str, ...] = ()
    """Command on the further nodes of an engine that spans several; it finds the first one by the
    variables of LeaderWorkerSet, such as `$(LWS_LEADER_ADDRESS)`."""
    has_stable_names: bool = False
    """The Pods of a group keep their names when they start again."""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[SecretVariable, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    ports: Ports = field(default_factory=Ports)
    devices: ExtendedResource | DeviceClaim | None = None
    """Devices of one Pod; None: the engine needs none."""
    cpu_millis: int | None = None
    memory_mib: int | None = None
    shm_mib: int | None = 8192
    tolerations: tuple[Toleration, ...] = ()
    runtime_class: str = ""
    artefact: ArtefactVolume | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """More labels of the objects and their Pods; ours win."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the objects, not of Pods."""
    start_seconds: int = 1800
    """Longest time from the container's start until it answers: weights are large."""
    drain_seconds: int = 15
    """Time between leaving the cluster's endpoints and the signal to end."""
    max_answer_seconds: int = 600
    """Longest answer that may still be written out while the engine ends."""
    patch: Any = None
    """What we do not model: a strategic merge patch (mapping) or JSON patch (list), put on last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayReference:
    """A Gateway that somebody else runs; ours attach a route to it."""

    name: str
    namespace: str = ""
    hostnames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerReference:
    """The Service that picks an endpoint for each request (ext_proc)."""

    name: str
    port: int = 9002
    failure_mode: Literal["FailClose", "FailOpen"] = "FailClose"


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerImages:
    """Images of llm-d's own parts, with tag or digest; empty: nobody named one."""

    picker: str = ""
    sidecar: str = ""
    """Stands before each decode engine and has prefill done elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLayout:
    """All groups of a pool with what they share."""

    pool: str
    namespace: str
    groups: tuple[EngineGroup, ...]
    as_set: bool = False
    """Prefill and decode are one object, and change together."""
    picker: PickerReference | None = None
    gateway: GatewayReference | None = None
    policy: Policy | None = None
    """How endpoints are chosen; None: the format's own way."""
    admission: Admission = field(default_factory=Admission)
    picker_images: PickerImages = field(default_factory=PickerImages)
    document: bytes = b""
    """Pool document as the pool's routers have it, JSON; empty: none is published."""


class Renderer(Protocol):
    """A format that engines can be written in."""

    slug: str
    sentence: str
    """What the format is for, for people who choose one."""

    def render(self, layout: PoolLayout) -> list[Manifest]:
        """Every object of a pool, in the order in which they are applied.

        Raises RenderRefusedError for what the format cannot express.
        """


def is_disaggregated(groups: Sequence[EngineGroup]) -> bool:
    """Whether prefill and decode are separate engines."""
    return any(group.role != "both" for group in groups)


def mebibyte_quantity(mebibytes: int) -> str:
    """Memory as the API server writes it back, so that a comparison finds no difference."""
    return f"{mebibytes // 1024}Gi" if mebibytes % 1024 == 0 else f"{mebibytes}Mi"


def cpu_quantity(millis: int) -> str:
    """Processors as the API server writes them back."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"
