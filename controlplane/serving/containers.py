"""From a pool's settings and an engine's command to the engine in a container; no query here.

Names of devices come from the vendor's facts, unless the settings say otherwise; what neither says
is refused with the field that is missing.
"""

from dataclasses import replace

from controlplane.serving.container_settings import ContainerSettings, Devices, read_settings
from controlplane.serving.engines.base import (
    HTTP_PORT,
    KV_EVENTS_PORT,
    KV_REPLAY_PORT,
    SIDE_CHANNEL_PORT,
    EngineCommand,
    EngineRequest,
)
from controlplane.serving.renderers.base import (
    ArtefactVolume,
    DeviceClaim,
    EngineGroup,
    ExtendedResource,
    GatewayReference,
    PickerImages,
    PickerReference,
    Ports,
    RenderRefusedError,
    SecretVariable,
    Toleration,
)
from inventory.facts import loading
from inventory.vendors import vendors

__all__ = [
    "HTTP_PORT",
    "KV_EVENTS_PORT",
    "KV_REPLAY_PORT",
    "SIDE_CHANNEL_PORT",
    "engine_group",
    "gateway_of",
    "picker_images_of",
    "picker_of",
    "read_settings",
    "several",
]


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

    What only exports can have (several nodes, stable names, an autoscaler) is `several`.
    """
    devices = _devices(settings, request.vendor, count=len(request.devices))
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


def several(group: EngineGroup, settings: ContainerSettings, *, replicas: int) -> EngineGroup:
    """A group of equal engines for an export, with what one engine at a time cannot have."""
    found = replace(
        group,
        replicas=None if settings.autoscaled else replicas,
        has_stable_names=settings.stable_names,
    )
    span = settings.span
    if span is None:
        return found
    return replace(
        found,
        nodes=span.nodes,
        devices=None
        if found.devices is None
        else replace(found.devices, count=span.devices_per_node),
        worker_argv=(*group.argv, *span.worker_arguments),
        argv=(*group.argv, *span.leader_arguments),
    )


def picker_images_of(settings: ContainerSettings) -> PickerImages:
    """Images of llm-d's parts as the renderers take them."""
    return PickerImages(picker=settings.llmd.picker, sidecar=settings.llmd.sidecar)


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
        kv_replay=request.kv_replay_port,
        side_channel=request.side_channel_port,
    )
