"""From a pool, an accelerator and a role to the engine that should run there; no query here."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.conf import settings as installation

from controlplane.serving import containers, facts
from controlplane.serving.container_settings import ContainerSettings
from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import EngineCommand, EngineRequest
from controlplane.serving.plans import spec_hash
from controlplane.serving.renderers.base import ArtefactVolume, Manifest, RenderRefusedError
from controlplane.serving.renderers.plain import engine_manifests
from controlplane.serving.targets.kubernetes.stamping import with_hash

if TYPE_CHECKING:
    from controlplane.serving.models import Pool
    from inventory.models import Accelerator

SIDE_CHANNEL_PORT = 5600
"""NIXL's default; each engine of a node takes the one at its slot's distance."""
LOCAL_EVENTS_PORT = 15557
"""Where the engine of a machine's first slot publishes cache events; two ports for each slot."""
MOUNT = "/models"
"""Where a Pod has the model's files."""
POD_ADDRESS = "$(POD_IP)"
"""Filled in by the kubelet: an engine listens where others reach it, and tells them so."""


def workload_name(hostname: str, slot: int) -> str:
    """Name of the engine of one accelerator, on hosts, routers and pages."""
    return f"{re.sub(r'[^a-z0-9.-]+', '-', hostname.lower()).strip('-.')}-{slot}"


def engine_name(accelerator: "Accelerator") -> str:
    """Name of the accelerator's engine: one on Kubernetes also says in which cluster.

    Machines of this installation have names of their own; nodes of two clusters often share one.
    """
    node = accelerator.node
    name = workload_name(node.hostname, accelerator.slot)
    return f"{name}.{node.cluster.slug.lower()}" if is_on_kubernetes(accelerator) else name


def is_on_kubernetes(accelerator: "Accelerator") -> bool:
    """Whether the engine of the accelerator is made of objects of a cluster."""
    return accelerator.node.cluster.kind == "kubernetes"


def engine_request(pool: "Pool", accelerator: "Accelerator", *, role: str) -> EngineRequest:
    """The engine described without any engine's own words."""
    model = pool.model
    is_real = pool.engine != "simulated"
    return EngineRequest(
        name=engine_name(accelerator),
        role=role,  # type: ignore[arg-type]  # the column allows only roles
        vendor=accelerator.vendor,
        accelerator=accelerator.model.slug,
        slot=accelerator.slot,
        model=model.slug,
        model_name=model.name,
        revision=model.revision,
        precision=model.precision,
        max_model_len=model.max_model_len,
        kv_heads=model.kv_heads,
        head_size=model.head_size,
        model_path=_model_path(pool, accelerator),
        offline=is_real and accelerator.node.cluster.site.air_gapped,
        arguments=pool.engine_arguments,
        **_addresses(accelerator, is_real=is_real),
    )


def _model_path(pool: "Pool", accelerator: "Accelerator") -> str:
    """Where the engine finds the pool's files; empty where it looks for the weights itself."""
    if not is_on_kubernetes(accelerator):
        return pool.artefact.folder if pool.artefact else ""
    return pod_model_path(pool)


def pod_model_path(pool: "Pool") -> str:
    """Where a Pod has the model's files: the volume that the pool names, else its artefact."""
    files = pool.containers.get("files")
    if isinstance(files, Mapping):
        return str(files.get("mount_path", MOUNT))
    return MOUNT if pool.artefact else ""


def artefact_volume(pool: "Pool") -> ArtefactVolume | None:
    """Volume with the pool's files in a Pod; copies of an object store are a folder by then."""
    artefact = pool.artefact
    if artefact is None:
        return None
    if artefact.folder:
        return ArtefactVolume(kind="node-path", source=artefact.folder, mount_path=MOUNT)
    return ArtefactVolume(kind=artefact.kind, source=artefact.uri, mount_path=MOUNT)  # type: ignore[arg-type]  # pvc and oci are left


def _addresses(accelerator: "Accelerator", *, is_real: bool) -> dict[str, Any]:
    """Where the engine listens: all ports of a Pod are its own, those of a machine are shared."""
    if not is_on_kubernetes(accelerator):
        if not is_real:
            return {"side_channel_port": None}
        found: dict[str, Any] = {"side_channel_port": SIDE_CHANNEL_PORT + accelerator.slot}
        if installation.LOCAL_KV_EVENTS:
            events = LOCAL_EVENTS_PORT + 2 * accelerator.slot
            found |= {"kv_events_port": events, "kv_replay_port": events + 1}
        return found
    found = {"host": POD_ADDRESS, "port": containers.HTTP_PORT, "in_pod": True}
    if is_real:
        found |= {
            "side_channel_port": containers.SIDE_CHANNEL_PORT,
            "kv_events_port": containers.KV_EVENTS_PORT,
            "kv_replay_port": containers.KV_REPLAY_PORT,
        }
    return found


def desired_spec(
    pool: "Pool", accelerator: "Accelerator", *, role: str, url: str = ""
) -> dict[str, Any]:
    """What a workload is wanted to be; equal inputs give an equal `spec_hash`.

    `url` is the address of an engine that somebody else runs. Raises RenderRefusedError when the
    pool does not say enough for an engine in a container, and EngineArgumentError.
    """
    request = engine_request(pool, accelerator, role=role)
    engine = launcher(pool.engine)
    command = engine.command(request)
    manifests = [] if url else _manifests(pool, accelerator, request, command)
    mark = spec_hash(command.argv, command.env, manifests)
    return {
        "engine": pool.engine,
        "url": url,
        "argv": list(command.argv),
        "env": dict(command.env),
        "spec_hash": mark,
        "manifests": with_hash(manifests, mark),
        "model": pool.model.slug,
        "role": role,
        "block_size_tokens": engine.block_size_tokens(request),
        "memory_share": engine.memory_share(request),
        "kv_contract": engine.kv_contract(request),
    }


def _manifests(
    pool: "Pool", accelerator: "Accelerator", request: EngineRequest, command: EngineCommand
) -> list[Manifest]:
    """Objects of an engine in a cluster; none elsewhere."""
    if not is_on_kubernetes(accelerator):
        return []
    node = accelerator.node
    settings = containers.read_settings({"namespace": node.cluster.namespace} | pool.containers)
    _require_ours_to_run(pool, settings)
    group = containers.engine_group(
        settings,
        request,
        EngineCommand(argv=command.argv, env=_for_container(command.env, pool, request)),
        pool=pool.slug,
        engine=pool.engine,
        hostnames=(node.hostname,),
    )
    if group.artefact is None:
        group = replace(group, artefact=artefact_volume(pool))
    return engine_manifests(group)


def _require_ours_to_run(pool: "Pool", settings: ContainerSettings) -> None:
    """A plan gives roles to accelerators of nodes that are named: it runs engines of one node.

    Raises RenderRefusedError for a pool whose engines somebody else counts or places.
    """
    if settings.autoscaled:
        raise RenderRefusedError(
            "containers.autoscaled",
            f"An autoscaler owns the number of engines of pool {pool.slug}, so a plan would fight "
            "it. Export the manifests and adopt what runs, or set containers.autoscaled to false.",
        )
    if settings.span is not None:
        raise RenderRefusedError(
            "containers.span",
            f"Engines of pool {pool.slug} span several nodes; a plan starts engines of one "
            "accelerator. Export the manifests and adopt what runs, or leave containers.span out.",
        )


def _for_container(env: Mapping[str, str], pool: "Pool", request: EngineRequest) -> dict[str, str]:
    """Without the variable that chooses a device: in a container only the given one is there."""
    vendors = facts.load("engines").get(pool.engine, {}).get("vendors", {})
    chooser = vendors.get(request.vendor, {}).get("device_env")
    return {name: value for name, value in env.items() if name != chooser}
