"""A pool as the objects of a cluster: what it is in the role ledger, written in a chosen format.

Equal engines are one group: same role, vendor and model of accelerator. Engines of a Kubernetes
cluster are bound to their nodes, since roles belong to accelerators; a pool that runs elsewhere is
written without nodes.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controlplane.common.errors import InvalidParameterError
from controlplane.serving import containers, deployments, documents
from controlplane.serving.engines import launcher
from controlplane.serving.engines.base import EngineArgumentError, EngineRequest, inside_pod
from controlplane.serving.errors import ManifestsRefusedError
from controlplane.serving.models import AssignedAccelerator, Pool
from controlplane.serving.renderers import renderer, renderers
from controlplane.serving.renderers._picker import llmd_default
from controlplane.serving.renderers._text import yaml_of
from controlplane.serving.renderers.base import (
    EngineGroup,
    PoolLayout,
    RenderRefusedError,
    is_disaggregated,
)
from controlplane.serving.selectors.viewers import documents_for_viewer
from inventory.models import Accelerator, Cluster
from routing.core.document import DocumentError, Policy

if TYPE_CHECKING:
    from controlplane.serving.container_settings import ContainerSettings
    from controlplane.tenancy.models import User

LLMD_DEFAULT = "llm-d-default"
POLICIES = (LLMD_DEFAULT, "round-robin", "session-hash", "sglang-cache-aware")
"""Policies that an export may have in place of the pool's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestQuestion:
    """What is to be written, and how."""

    renderer: str = "plain"
    cluster: str = ""
    """Needed when the pool's engines are in several clusters."""
    policy: str = ""
    """In place of the pool's own, where the format does not have that one."""


def pool_manifests(pool: Pool, question: ManifestQuestion, *, viewer: "User") -> str:
    """Every object of the pool as YAML, one document each.

    Raises InvalidParameterError or ManifestsRefusedError, which names the field.
    """
    if question.renderer not in renderers():
        raise InvalidParameterError(
            parameter="renderer",
            value=question.renderer,
            allowed=", ".join(sorted(renderers())),
        )
    members = _members(pool, question.cluster)
    try:
        layout = _layout(pool, members, question, viewer=viewer)
        manifests = renderer(question.renderer).render(layout)
    except RenderRefusedError as error:
        raise _refusal(pool, question, error.field, str(error)) from error
    except EngineArgumentError as error:
        raise _refusal(pool, question, "engine_arguments", str(error)) from error
    except DocumentError as error:
        raise _refusal(pool, question, error.pointer, error.message) from error
    return _heading(pool, layout, question) + yaml_of(manifests)


def _refusal(
    pool: Pool, question: ManifestQuestion, field: str, sentence: str
) -> ManifestsRefusedError:
    others = sorted(set(renderers()) - {question.renderer})
    return ManifestsRefusedError(
        pool=pool.slug,
        renderer=question.renderer,
        pointer=field,
        detail=sentence,
        allowed=", ".join(others),
    )


def _heading(pool: Pool, layout: PoolLayout, question: ManifestQuestion) -> str:
    engines = ", ".join(
        f"{'autoscaled' if group.replicas is None else group.replicas} {group.role} on "
        f"{group.accelerator}"
        for group in layout.groups
    )
    return f"# Pool {pool.slug} as {question.renderer}: {engines}.\n"


def _members(pool: Pool, cluster: str) -> list[tuple[str, Accelerator]]:
    """Role and accelerator of every open assignment, in one cluster."""
    rows = (
        AssignedAccelerator.objects.filter(open=True, assignment__pool=pool)
        .select_related("assignment", "accelerator__model", "accelerator__node__cluster__site")
        .order_by("accelerator__node__hostname", "accelerator__slot", "pk")
    )
    found = [(row.assignment.role, row.accelerator) for row in rows]
    clusters = {accelerator.node.cluster for _, accelerator in found}
    slugs = sorted(one.slug for one in clusters)
    are_apart = len(slugs) > 1 and any(_is_kubernetes(one) for one in clusters)
    if (cluster or are_apart) and cluster not in slugs:
        raise InvalidParameterError(
            parameter="cluster", value=cluster, allowed=", ".join(slugs) or "-"
        )
    return [row for row in found if not cluster or row[1].node.cluster.slug == cluster]


def _is_kubernetes(cluster: Cluster) -> bool:
    return cluster.kind == Cluster.Kind.KUBERNETES


def _layout(
    pool: Pool,
    members: Sequence[tuple[str, Accelerator]],
    question: ManifestQuestion,
    *,
    viewer: "User",
) -> PoolLayout:
    if not members:
        raise RenderRefusedError(
            "assignments", "No accelerator has a role in the pool, so there is nothing to write."
        )
    home = members[0][1].node.cluster
    known = {"namespace": home.namespace} if _is_kubernetes(home) else {}
    settings = containers.read_settings(known | pool.containers)
    groups = _groups(pool, members, settings)
    return PoolLayout(
        pool=pool.slug,
        namespace=settings.namespace,
        groups=groups,
        as_set=settings.disaggregated_set,
        picker=containers.picker_of(settings),
        gateway=containers.gateway_of(settings),
        picker_images=containers.picker_images_of(settings),
        policy=_policy(pool, question.policy, groups),
        admission=documents.admission_of(
            pool.policy if not question.policy else "", pool.admission
        ),
        document=_document(pool, question, viewer),
    )


def _groups(
    pool: Pool, members: Sequence[tuple[str, Accelerator]], settings: "ContainerSettings"
) -> tuple[EngineGroup, ...]:
    alike: dict[tuple[str, str], list[Accelerator]] = defaultdict(list)
    for role, accelerator in members:
        alike[role, accelerator.model.slug].append(accelerator)
    return tuple(_group(pool, role, alike[role, model], settings) for role, model in sorted(alike))


def _group(
    pool: Pool, role: str, accelerators: Sequence[Accelerator], settings: "ContainerSettings"
) -> EngineGroup:
    first = accelerators[0]
    request = _request(pool, first, role)
    nodes = {one.node.hostname for one in accelerators}
    group = containers.engine_group(
        settings,
        request,
        launcher(pool.engine).command(request),
        pool=pool.slug,
        engine=pool.engine,
        hostnames=tuple(sorted(nodes)) if _is_kubernetes(first.node.cluster) else (),
    )
    if group.artefact is None:
        group = replace(group, artefact=deployments.artefact_volume(pool))
    used = len(request.devices)
    return containers.several(group, settings, replicas=max(1, len(accelerators) // used))


def _request(pool: Pool, accelerator: Accelerator, role: str) -> EngineRequest:
    """The engine in a Pod, also where it runs as a process at present."""
    request = replace(
        inside_pod(deployments.engine_request(pool, accelerator, role=role)),
        name=f"{pool.slug}-{role}-{accelerator.model.slug}",
        model_path=deployments.pod_model_path(pool),
    )
    if pool.engine != "simulated":
        return request
    return replace(request, side_channel_port=None, kv_events_port=None, kv_replay_port=None)


def _policy(pool: Pool, wanted: str, groups: Sequence[EngineGroup]) -> Policy:
    if not wanted:
        return documents.policy_of(pool.policy, pool.policy_parameters)
    if wanted == LLMD_DEFAULT:
        return llmd_default(disaggregated=is_disaggregated(groups))
    if wanted not in POLICIES:
        raise InvalidParameterError(parameter="policy", value=wanted, allowed=", ".join(POLICIES))
    return documents.policy_of(wanted, {})


def _document(pool: Pool, question: ManifestQuestion, viewer: "User") -> bytes:
    """The last version, for the format that writes it and for who may see it."""
    if question.renderer != "router":
        return b""
    row = documents_for_viewer(viewer).filter(pool=pool).order_by("-version").first()
    return b"" if row is None else row.content.encode()
