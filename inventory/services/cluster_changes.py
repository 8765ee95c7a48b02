"""Clusters: added and changed by people."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from inventory.errors import ClusterHeldError, ValueNotAllowedError
from inventory.kubernetes.connection import IN_CLUSTER, is_reference
from inventory.models import Cluster, Site
from inventory.services.connection_tests import start_test
from inventory.services.placing import check_values, sentences

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

CHANGEABLE = ("name", "connection_reference", "namespace")
_BINDING = ("connection_reference", "namespace")
"""What engines that run in the cluster depend on."""


@transaction.atomic
def create_cluster(
    *,
    slug: str,
    name: str,
    site_id: UUID,
    kind: str = Cluster.Kind.STATIC,
    actor: "User",
    reason: str = "",
    **connection: str,
) -> Cluster:
    """Add a cluster to a site; the connection of a Kubernetes cluster is tested at once.

    `connection` may hold `connection_reference` and `namespace`. Raises ValueNotAllowedError,
    SlugTakenError or NotPermittedError.
    """
    permissions.require(actor, "inventory.add_cluster")
    cluster = Cluster(
        slug=slug, name=name, site=Site.objects.get(pk=site_id), kind=kind, **connection
    )
    check_values(cluster)
    _check_reference(cluster)
    with sentences(cluster):
        cluster.save(force_insert=True)
    audit.record(
        actor=actor, action="cluster.create", subject=cluster, reason=reason,
        after={"slug": slug, "kind": kind, **_shown(cluster)},
    )  # fmt: skip
    outbox.emit("consort.cluster.created", subject=cluster)
    if cluster.kind == Cluster.Kind.KUBERNETES:
        start_test(cluster, actor)
    return cluster


@transaction.atomic
def change_cluster(*, cluster_id: UUID, reason: str, actor: "User", **changes: str) -> Cluster:
    """Change name, connection reference or namespace; what was found out about it is asked anew.

    Reference and namespace stay while engines run on nodes of the cluster. Raises
    ClusterHeldError, ValueNotAllowedError or NotPermittedError.
    """
    cluster = Cluster.objects.select_for_update(no_key=True, of=("self",)).get(pk=cluster_id)
    permissions.require(actor, "inventory.change_cluster", cluster)
    before = _shown(cluster)
    for field in set(changes) & set(CHANGEABLE):
        setattr(cluster, field, changes[field])
    after = _shown(cluster)
    moved = [field for field in _BINDING if before[field] != after[field]]
    _check_held(cluster, moved)
    check_values(cluster)
    _check_reference(cluster)
    if moved:
        _forget_what_was_found(cluster)
    with sentences(cluster):
        cluster.save()
    audit.record(
        actor=actor, action="cluster.change", subject=cluster, reason=reason,
        before=before, after=after,
    )  # fmt: skip
    outbox.emit("consort.cluster.changed", subject=cluster)
    if moved and cluster.kind == Cluster.Kind.KUBERNETES:
        start_test(cluster, actor)
    return cluster


def _check_reference(cluster: Cluster) -> None:
    """A Kubernetes cluster has a reference; what is behind it only a worker can see."""
    reference = cluster.connection_reference
    if cluster.kind != Cluster.Kind.KUBERNETES:
        if reference:
            raise ValueNotAllowedError(
                field="connection_reference",
                why=_("Only a Kubernetes cluster is reached over a connection."),
            )
        return
    if reference != IN_CLUSTER and not is_reference(reference):
        raise ValueNotAllowedError(
            field="connection_reference",
            why=_(
                "Give 'in-cluster', or the name of a folder below CLUSTER_CREDENTIALS_DIR: small "
                "letters, digits, dots and hyphens."
            ),
        )


def _check_held(cluster: Cluster, moved: list[str]) -> None:
    for path in settings.CLUSTER_HOLDERS if moved else ():
        if holder := import_string(path)(cluster):
            raise ClusterHeldError(field=moved[0], cluster=cluster.slug, holder=holder)


def _forget_what_was_found(cluster: Cluster) -> None:
    """Another server: nothing is known of it."""
    cluster.version, cluster.kinds, cluster.missing_rights, cluster.tested_at = "", None, None, None
    cluster.failures, cluster.retry_at = 0, None
    cluster.error, cluster.error_code, cluster.error_facts = "", "", {}
    cluster.answered_at = None


def _shown(cluster: Cluster) -> dict[str, Any]:
    """What the audit keeps; a reference says where credentials are, and is none itself."""
    return {field: getattr(cluster, field) for field in CHANGEABLE}
