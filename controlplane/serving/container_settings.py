"""What the operator says about the containers of a pool's engines, read strictly; no query here.

`Pool.containers` holds what nobody else can know: namespace, images with tag or digest, where the
model's files are. A field that nobody knows, a value of another type and a text that no object of a
cluster may have are refused with the field and what is allowed.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from controlplane.serving.renderers.base import RenderRefusedError

_DNS = r"\A[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z"
_VARIABLE = r"\A[A-Za-z_][A-Za-z0-9_]*\Z"
_IMAGE = r"\A[A-Za-z0-9][A-Za-z0-9._/:@-]*\Z"
_NO_IMAGE = r"\A([A-Za-z0-9][A-Za-z0-9._/:@-]*)?\Z"
_LABEL_KEY = r"\A([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z"
_LABEL_VALUE = r"\A([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z"
_MOUNT_PATH = r"\A/[^:\n]+\Z"
_SUB_PATH = r"\A([^/:\n][^:\n]*)?\Z"
_IN_WORDS = {
    _DNS: "lower-case letters, digits, dots and hyphens",
    _VARIABLE: "letters, digits and underscores",
    _IMAGE: "a reference of an image, without a scheme",
    _NO_IMAGE: "a reference of an image, without a scheme",
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


class Span(_Strict, frozen=True, kw_only=True):
    """An engine over several nodes: as many Pods, which start and end together."""

    nodes: Annotated[int, msgspec.Meta(ge=2, le=64)]
    devices_per_node: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    leader_arguments: Annotated[list[Text], msgspec.Meta(max_length=100)] = []
    """Words after the command of the first node."""
    worker_arguments: Annotated[list[Text], msgspec.Meta(min_length=1, max_length=100)]
    """Words after the command of each further node."""


class LlmdImages(_Strict, frozen=True):
    """Images of llm-d's own parts, for exports to it."""

    picker: Annotated[str, msgspec.Meta(max_length=500, pattern=_NO_IMAGE)] = ""
    sidecar: Annotated[str, msgspec.Meta(max_length=500, pattern=_NO_IMAGE)] = ""


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
    stable_names: bool = False
    """Pods of a group keep their names when they start again; for exports."""
    disaggregated_set: bool = False
    """Prefill and decode are one object and change together; for exports."""
    span: Span | None = None
    """Engines over several nodes; for exports."""
    llmd: LlmdImages = LlmdImages()
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


def _refusal(message: str) -> RenderRefusedError:
    """msgspec's message with the field in front and patterns in words."""
    sentence, _, place = message.partition(" - at ")
    path = place.rpartition("`$")[2].removesuffix("`").replace("[...]", ".*")
    for pattern, words in _IN_WORDS.items():
        sentence = sentence.replace(f"`str` matching regex {pattern!r}", words)
    return RenderRefusedError(f"containers{path}", f"containers{path}: {sentence}.")
