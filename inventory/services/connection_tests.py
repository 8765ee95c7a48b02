"""Tests of a cluster's connection: version, kinds and rights, asked by a worker and kept."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from controlplane.operations import services as operations
from controlplane.operations.models import Operation
from inventory import clusterwords, selectors
from inventory.errors import ClusterNotTestableError, ClusterTestError
from inventory.kubernetes import rights, wanted
from inventory.kubernetes.client import ClusterClient
from inventory.kubernetes.errors import AnswerError, ClusterError, ClusterRefusedError
from inventory.models import Cluster
from inventory.services import clusters

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

VERSION_STEP, KINDS_STEP, RIGHTS_STEP = (
    "ask for the version",
    "list the kinds",
    "ask for the rights",
)


@transaction.atomic
def start_connection_test(*, cluster_id: UUID, actor: "User", reason: str = "") -> Operation:
    """Start a test of the connection; a worker does it.

    Of several clicks the first starts it, and the others get the same operation. Raises
    ClusterNotTestableError or NotPermittedError.
    """
    cluster = Cluster.objects.select_for_update(no_key=True, of=("self",)).get(pk=cluster_id)
    permissions.require(actor, "inventory.test_cluster", cluster)
    if cluster.kind != Cluster.Kind.KUBERNETES:
        raise ClusterNotTestableError(cluster=cluster.slug)
    running = selectors.running_test(cluster)
    if running is not None:
        return running
    audit.record(actor=actor, action="cluster.test", subject=cluster, reason=reason)
    return start_test(cluster, actor)


def start_test(cluster: Cluster, actor: "User") -> Operation:
    """The operation of a test, inside the caller's transaction and without asking who may."""
    return operations.start(
        kind=selectors.CONNECTION_TEST,
        subject=cluster,
        task="inventory.tasks.run_connection_test",
        actor=actor,
        steps=[VERSION_STEP, KINDS_STEP, RIGHTS_STEP],
    )


def run_connection_test(*, operation_id: UUID | str) -> None:
    """Do it; running it again asks again, which changes nothing but what was found out."""
    operation = operations.claim(operation_id)
    if operation is None:
        return
    cluster = Cluster.objects.get(pk=operation.subject_id)
    try:
        with clusters.open_client(cluster, for_person=True) as client:
            found = _look(client, cluster, operation)
    except ClusterError as error:
        if isinstance(error, AnswerError | ClusterRefusedError):
            # An answer, so the client noted one; that it is of no use is kept as well.
            clusters.record_failure(cluster.pk, error)
        words = clusterwords.of_error(error)
        refusal = ClusterTestError(cluster=cluster.slug, why=words.what, advice=words.advice)
        operations.fail(operation, refusal)
        return
    _keep(cluster.pk, found)
    operations.succeed(operation, result={"cluster": cluster.slug, **found})


def _look(client: ClusterClient, cluster: Cluster, operation: Operation) -> dict[str, Any]:
    with operations.step(operation, VERSION_STEP) as step:
        step.detail = version = client.version()
    with operations.step(operation, KINDS_STEP) as step:
        kinds = wanted.found(client.kinds())
        step.detail = f"{len(kinds)} / {len(wanted.WANTED)}"
    with operations.step(operation, RIGHTS_STEP) as step:
        needed = rights.needed((cluster.namespace,))
        missing = [str(right) for right in client.may(needed)]
        step.detail = f"{len(needed) - len(missing)} / {len(needed)}"
    return {"version": version, "kinds": kinds, "missing_rights": missing}


@transaction.atomic
def _keep(cluster_id: UUID, found: dict[str, Any]) -> None:
    cluster = Cluster.objects.select_for_update(no_key=True, of=("self",)).get(pk=cluster_id)
    cluster.version, cluster.kinds = found["version"], found["kinds"]
    cluster.missing_rights, cluster.tested_at = found["missing_rights"], timezone.now()
    cluster.save(update_fields=["version", "kinds", "missing_rights", "tested_at", "updated_at"])
    outbox.emit("consort.cluster.tested", subject=cluster)
