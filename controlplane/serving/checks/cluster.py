"""Can the plan's engines be written as objects of their clusters, and do the clusters take them?"""

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from controlplane.serving import deployments
from controlplane.serving.checks.base import CheckResult
from controlplane.serving.engines.base import EngineArgumentError
from controlplane.serving.plans import items_of
from controlplane.serving.renderers._text import difference
from controlplane.serving.renderers.base import Manifest, RenderRefusedError
from controlplane.serving.targets.kubernetes.stamping import with_hash
from inventory.models import Accelerator, Cluster

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan

MOST_PATCH = 20_000
"""Characters of a patch's diff that are kept with a plan."""
INSTALLED_BY = {
    "LeaderWorkerSet": "LWS (leaderworkerset.x-k8s.io)",
    "ResourceClaimTemplate": "Kubernetes 1.34 or newer (resource.k8s.io/v1)",
}


def check(plan: "ChangePlan") -> CheckResult:
    """Block if the pool does not say enough, or a cluster lacks a kind or does not let us write.

    What nobody asked a cluster yet is a warning: unknown is never a pass.
    """
    wanted = [item for item in items_of(plan.diff) if item.to_role and item.target == "kubernetes"]
    rows = Accelerator.objects.select_related("model", "node__cluster").filter(
        pk__in=[item.accelerator for item in wanted]
    )
    clusters: dict[Cluster, set[tuple[str, str]]] = {}
    for accelerator in rows.order_by("pk"):
        try:
            manifests = _manifests(plan, accelerator)
        except (RenderRefusedError, EngineArgumentError) as error:
            return CheckResult(verdict="block", sentence=str(error))
        kinds = clusters.setdefault(accelerator.node.cluster, set())
        kinds |= {(manifest["apiVersion"], manifest["kind"]) for manifest in manifests}
    numbers: dict[str, Any] = {
        "clusters": {cluster.slug: len(kinds) for cluster, kinds in clusters.items()}
    }
    if patch := _patch(plan, rows):
        numbers["patch"] = patch
    for cluster in sorted(clusters, key=lambda row: row.slug):
        if sentence := _hindrance(cluster, clusters[cluster]):
            return CheckResult(verdict="block", sentence=sentence, numbers=numbers)
    untested = sorted(cluster.slug for cluster in clusters if cluster.kinds is None)
    if untested:
        sentence = _(
            "Nobody tested the connection, so what these clusters can do is unknown: {names}."
        )
        return CheckResult(
            verdict="warn", sentence=sentence.format(names=", ".join(untested)), numbers=numbers
        )
    sentence = _("Every engine on Kubernetes can be written, and its cluster has the kinds.")
    if not clusters:
        sentence = _("The plan starts no engine on Kubernetes.")
    return CheckResult(verdict="pass", sentence=sentence, numbers=numbers)


def _patch(plan: "ChangePlan", rows: Iterable[Accelerator]) -> str:
    """What the pool's patch changes in the objects of the first engine, as a diff."""
    patches = plan.pool.containers.get("patches") or {}
    if not patches.get(plan.role):
        return ""
    bare = copy(plan.pool)
    bare.containers = {**plan.pool.containers, "patches": {}}
    for accelerator in rows:
        before, after = (
            with_hash(deployments.desired_spec(pool, accelerator, role=plan.role)["manifests"], "")
            for pool in (bare, plan.pool)
        )
        pairs = zip(before, after, strict=True)
        return "\n".join(filter(None, (difference(*pair) for pair in pairs)))[:MOST_PATCH]
    return ""


def _manifests(plan: "ChangePlan", accelerator: Accelerator) -> list[Manifest]:
    desired = deployments.desired_spec(plan.pool, accelerator, role=plan.role)
    manifests: list[Manifest] = desired["manifests"]
    return manifests


def _hindrance(cluster: Cluster, kinds: set[tuple[str, str]]) -> str:
    """Why the cluster does not take the engines; "" if nothing is known against it."""
    for api_version, kind in sorted(kinds):
        if cluster.serves(api_version, kind) is False:
            return _("Cluster {name} has no {kind}. It comes with: {source}.").format(
                name=cluster.slug, kind=kind, source=INSTALLED_BY.get(kind, api_version)
            )
    written = [right for right in cluster.missing_rights or [] if _is_needed(right)]
    if written:
        return _(
            "Consort is not allowed what it needs in cluster {name}: {rights}. Give it the role in"
            " docs/kubernetes.md, then test the connection."
        ).format(name=cluster.slug, rights=", ".join(written))
    return ""


def _is_needed(right: object) -> bool:
    """Whether serving cannot do without it: writing Deployments, seeing them and their Pods."""
    words = str(right).split()
    return len(words) > 1 and words[1] in {"deployments.apps", "pods"} and words[0] != "watch"
