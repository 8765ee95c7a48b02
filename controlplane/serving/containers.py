"""How a pool's engines run in containers: the pool's settings, read strictly; no query here.

`Pool.containers` holds what nobody can know but the operator: namespace, images with tag or digest,
where the model's files are. Names of devices come from the vendor's facts, unless the settings say
otherwise; what neither says is refused with the field that is missing.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from controlplane.serving.engines.base import EngineCommand, EngineRequest
from controlplane.serving.renderers.base import (
    ArtefactVolume,
    DeviceClaim,
    EngineGroup,
    ExtendedResource,
    GatewayReference,
    PickerReference,
    Ports,
    RenderRefusedError,
    SecretVariable,
    Toleration,
)
from inventory.facts import loading
from inventory.vendors import vendors

HTTP_PORT, KV_EVENTS_PORT, KV_REPLAY_PORT, SIDE_CHANNEL_PORT = 8000, 5557, 5558, 5600
"""Ports of an engine inside its Pod: each Pod has an address of its own, so all have the same."""

_DNS = r"\A[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z"
_VARIABLE = r"\A[A-Za-z_][A-Za-z0-9_]*\Z"
_IMAGE = r"\A[A-Za-z0-9][A-Za-z0-9._/:@-]*\Z"
_LABEL_KEY = r"\A([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z"
_LABEL_VALUE = r"\A([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z"
_MOUNT_PATH = r"\A/[^:\n]+\Z"
_SUB_PATH = r"\A([^/:\n][^:\n]*)?\Z"
_IN_WORDS = {
    _DNS: "lower-case letters, digits, dots and hyphens",
    _VARIABLE: "letters, digits and underscores",
    _IMAGE: "a reference of an image, without a scheme",
    _LABEL_KEY: "a label's key, with or without a prefix",
    _LABEL_VALUE: "a label's value: letters, digits, '-', '_' and '.'",
    _MOUNT_PATH: "an absolute path without a colon",
    _SUB_PATH: "a path inside the volume, without a leading slash",
}
_OWN_LABELS = ("consort.dev/", "llm-d.ai/", "app.kubernetes.io/managed-by", "disaggregatedset.")
MOST_BYTES = 256 * 1024
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253, pattern=_DNS)]
Namespace = Annotated[str, msgspec.Meta(min_length=1, max_length=63, pattern=_DNS)]
Variable = Annotated[str, msgspec.Meta(max_length=128, pattern=_VARIABLE)]
Image = Annotated[str, msgspec.Meta(max_length=500, pattern=_IMAGE)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]
Short = Annotated[str, msgspec.Meta(max_length=253)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=86_400)]
Size = Annotated[int, msgspec.Meta(ge=1, le=16 * 1024 * 1024)]
"""MiB, at most 16 TiB."""
LabelKey = Annotated[str, msgspec.Meta(max_length=253, pattern=_LABEL_KEY)]
LabelValue = Annotated[str, msgspec.Meta(max_length=63, pattern=_LABEL_VALUE)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields that nobody knows are refused."""


class Secret(_Strict, frozen=True):
    """A variable filled from a Secret of the namespace."""

    variable: Variable
    secret: Name
    key: Short


class Taint(_Strict, frozen=True):
    """A taint beside which engines may stand."""

    key: Short
    operator: Literal["Exists", "Equal"] = "Exists"
    value: Short = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class Devices(_Strict, frozen=True):
    """How devices of one vendor are asked for; an empty field takes the vendor's fact."""

    resource: Short = ""
    device_class: Short = ""
    conditions: Annotated[list[Text], msgspec.Meta(max_length=32)] = []
    tolerations: Annotated[list[Taint], msgspec.Meta(max_length=32)] = []
    runtime_class: Short = ""


class Files(_Strict, frozen=True):
    """Volume that holds the model's files."""

    kind: Literal["pvc", "node-path", "oci"]
    source: Text
    mount_path: Annotated[str, msgspec.Meta(pattern=_MOUNT_PATH, max_length=500)] = "/models"
    sub_path: Annotated[str, msgspec.Meta(pattern=_SUB_PATH, max_length=500)] = ""


class Gateway(_Strict, frozen=True):
    """Gateway to which the pool's route is attached."""

    name: Name
    namespace: Annotated[str, msgspec.Meta(max_length=63)] = ""
    hostnames: Annotated[list[Name], msgspec.Meta(max_length=16)] = []


class Picker(_Strict, frozen=True):
    """Service that picks endpoints for the gateway."""

    name: Name
    port: Port = 9002
    failure_mode: Literal["FailClose", "FailOpen"] = "FailClose"


class ContainerSettings(_Strict, frozen=True):
    """Everything that the operator says about the containers of a pool's engines."""

    namespace: Namespace
    images: Annotated[dict[Short, Image], msgspec.Meta(max_length=64)] = {}
    """Image with tag or digest, by vendor."""
    image_pull_secrets: Annotated[list[Name], msgspec.Meta(max_length=16)] = []
    service_account: Short = ""
    env: Annotated[dict[Variable, Text], msgspec.Meta(max_length=200)] = {}
    secrets: Annotated[list[Secret], msgspec.Meta(max_length=64)] = []
    labels: Annotated[dict[LabelKey, LabelValue], msgspec.Meta(max_length=32)] = {}
    claims: bool = False
    """Devices are claimed by their class, and not counted by their resource."""
    devices: Annotated[dict[Short, Devices], msgspec.Meta(max_length=64)] = {}
    cpu_millis: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    memory_mib: Size | None = None
    shm_mib: Size | None = 8192
    start_seconds: Annotated[int, msgspec.Meta(ge=10, le=86_400)] = 1800
    drain_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 15
    max_answer_seconds: Seconds = 600
    files: Files | None = None
    autoscaled: bool = False
    """An autoscaler owns the number of replicas, so it is never written."""
    gateway: Gateway | None = None
    picker: Picker | None = None
    patches: dict[Literal["prefill", "decode", "both"], dict[str, Any] | list[dict[str, Any]]] = {}
    """Patch of the manifests by role: strategic merge (mapping) or JSON patch (list)."""


def read_settings(values: Mapping[str, Any]) -> ContainerSettings:
    """Settings of a pool. Raises RenderRefusedError with the field and what is allowed there."""
    if len(msgspec.json.encode(values)) > MOST_BYTES:
        raise RenderRefusedError(
            "containers", f"containers: more than {MOST_BYTES} bytes. Take out what is not needed."
        )
    try:
        settings = msgspec.convert(dict(values), ContainerSettings)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from error
    taken = sorted(key for key in settings.labels if key.startswith(_OWN_LABELS))
    if taken:
        raise RenderRefusedError(
            "containers.labels",
            f"containers.labels: {taken[0]} is written by Consort and cannot be set. "
            "Choose another key.",
        )
    return settings


def engine_group(
    settings: ContainerSettings,
    request: EngineRequest,
    command: EngineCommand,
    *,
    pool: str,
    engine: str,
    hostnames: tuple[str, ...] = (),
) -> EngineGroup:
    """One engine as the renderers take it. Raises RenderRefusedError for what nobody said.

    For several, or a number that an autoscaler owns, replace `replicas`.
    """
    devices = _devices(settings, request.vendor, count=1)
    chosen = settings.devices.get(request.vendor, Devices())
    return EngineGroup(
        name=request.name,
        namespace=settings.namespace,
        pool=pool,
        role=request.role,
        hostnames=hostnames,
        model=request.model,
        model_name=request.model_name,
        revision=request.revision,
        engine=engine,
        vendor=request.vendor,
        accelerator=request.accelerator,
        image=_image(settings, request.vendor),
        argv=command.argv,
        env={**command.env, **settings.env},
        secrets=_secrets(settings),
        image_pull_secrets=tuple(settings.image_pull_secrets),
        service_account=settings.service_account,
        ports=_ports(request),
        devices=devices,
        cpu_millis=settings.cpu_millis,
        memory_mib=settings.memory_mib,
        shm_mib=settings.shm_mib,
        tolerations=_tolerations(chosen, request.vendor, devices),
        runtime_class=chosen.runtime_class,
        artefact=_artefact(settings),
        labels=settings.labels,
        start_seconds=settings.start_seconds,
        drain_seconds=settings.drain_seconds,
        max_answer_seconds=settings.max_answer_seconds,
        patch=settings.patches.get(request.role),
    )


def gateway_of(settings: ContainerSettings) -> GatewayReference | None:
    """The gateway as the renderers take it."""
    one = settings.gateway
    if one is None:
        return None
    return GatewayReference(name=one.name, namespace=one.namespace, hostnames=tuple(one.hostnames))


def picker_of(settings: ContainerSettings) -> PickerReference | None:
    """The picker as the renderers take it."""
    one = settings.picker
    if one is None:
        return None
    return PickerReference(name=one.name, port=one.port, failure_mode=one.failure_mode)


def _refusal(message: str) -> RenderRefusedError:
    """msgspec's message with the field in front and patterns in words."""
    sentence, _, place = message.partition(" - at ")
    path = place.rpartition("`$")[2].removesuffix("`").replace("[...]", ".*")
    for pattern, words in _IN_WORDS.items():
        sentence = sentence.replace(f"`str` matching regex {pattern!r}", words)
    return RenderRefusedError(f"containers{path}", f"containers{path}: {sentence}.")


def _image(settings: ContainerSettings, vendor: str) -> str:
    image, field = settings.images.get(vendor), f"containers.images.{vendor}"
    if image is None:
        facts = loading.vendors().get(vendor)
        known = ", ".join(facts.images) if facts and facts.images else "none is public"
        raise RenderRefusedError(
            field,
            f"No image is set for engines on {vendor}. Set {field} to an image with its tag or "
            f"digest. Repositories: {known}.",
        )
    if "@" not in image and ":" not in image.rpartition("/")[2]:
        raise RenderRefusedError(
            field,
            f"The image {image} has neither a tag nor a digest, so two nodes may run two "
            f"versions. Write {image}:TAG or {image}@sha256:DIGEST.",
        )
    return image


def _devices(
    settings: ContainerSettings, vendor: str, *, count: int
) -> ExtendedResource | DeviceClaim:
    chosen, facts = settings.devices.get(vendor, Devices()), loading.vendors().get(vendor)
    known_names = vendors()[vendor].resource_names if vendor in vendors() else ()
    device_class = chosen.device_class or next(iter(facts.device_classes if facts else ()), "")
    resource = chosen.resource or next(iter(known_names), "")
    # A vendor that gives its devices out by claims only has a class and no resource.
    if settings.claims or chosen.device_class or not resource:
        if not device_class:
            raise _unknown_devices(vendor, "device_class" if settings.claims else "resource")
        return DeviceClaim(
            device_class=device_class, count=count, conditions=tuple(chosen.conditions)
        )
    return ExtendedResource(name=resource, count=count)


def _unknown_devices(vendor: str, field: str) -> RenderRefusedError:
    place = f"containers.devices.{vendor}.{field}"
    return RenderRefusedError(
        place, f"How a cluster gives out devices of {vendor} is not known. Set {place}."
    )


def _tolerations(
    chosen: Devices, vendor: str, devices: ExtendedResource | DeviceClaim
) -> tuple[Toleration, ...]:
    """Asked for, known of the vendor, and the taint that carries the name of the resource.

    Kubernetes' admission plugin ExtendedResourceToleration adds the last one as well, where it is
    on; nodes with accelerators are commonly tainted so.
    """
    asked = [
        Toleration(key=one.key, operator=one.operator, value=one.value, effect=one.effect)
        for one in chosen.tolerations
    ]
    facts = loading.vendors().get(vendor)
    keys = [*(facts.tolerations if facts else ())]
    if isinstance(devices, ExtendedResource):
        keys.append(devices.name)
    have = {one.key for one in asked}
    return (*asked, *(Toleration(key=key) for key in sorted(set(keys) - have)))


def _secrets(settings: ContainerSettings) -> tuple[SecretVariable, ...]:
    return tuple(
        SecretVariable(variable=one.variable, secret=one.secret, key=one.key)
        for one in settings.secrets
    )


def _artefact(settings: ContainerSettings) -> ArtefactVolume | None:
    files = settings.files
    if files is None:
        return None
    if files.kind == "node-path" and not files.source.startswith("/"):
        raise RenderRefusedError(
            "containers.files.source",
            f"'{files.source}' is not an absolute path; a folder of a node starts with '/'.",
        )
    return ArtefactVolume(
        kind=files.kind,
        source=files.source,
        mount_path=files.mount_path,
        sub_path=files.sub_path,
    )


def _ports(request: EngineRequest) -> Ports:
    return Ports(
        http=request.port or HTTP_PORT,
        kv_events=request.kv_events_port,
        side_channel=request.side_channel_port,
    )
