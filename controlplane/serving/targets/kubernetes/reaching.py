"""The way to a cluster's API for a target: whose words errors are in, and who hears of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

from controlplane.serving.targets.base import TargetRefusedError, TargetUnavailableError
from inventory.kubernetes.errors import (
    ClusterError,
    ClusterRefusedError,
    FieldConflictError,
    KindMissingError,
    StaleError,
)
from inventory.models import Cluster
from inventory.services import clusters

if TYPE_CHECKING:
    from inventory.kubernetes.client import ClusterClient


@contextmanager
def reached(cluster_id: str) -> Iterator["ClusterClient"]:
    """A client of the cluster; its errors become a target's.

    How the cluster answered is noted at its row, so that others do not wait for a silent one in
    turn. Raises TargetUnavailableError or TargetRefusedError.
    """
    cluster = _cluster(cluster_id)
    try:
        with clusters.open_client(cluster) as client:
            yield client
    except StaleError as error:
        # Somebody writes to the object all the time; the next pass reads it again.
        raise TargetUnavailableError(f"Cluster {cluster.slug}: {error}") from error
    except ClusterRefusedError as error:
        raise refusal(cluster.slug, error) from error
    except ClusterError as error:
        raise TargetUnavailableError(f"Cluster {cluster.slug}: {error}") from error


def refusal(cluster: str, error: ClusterRefusedError) -> TargetRefusedError:
    """What an API server refused, with the one who stands in the way when there is one."""
    if isinstance(error, FieldConflictError):
        fields = ", ".join(error.fields) or "fields that it does not name"
        sentence = (
            f"Cluster {cluster}: {error.manager} holds {fields}. Nothing was changed: take the "
            "field from there, or want the same here."
        )
        return TargetRefusedError(sentence, reason="FieldConflict")
    if isinstance(error, KindMissingError):
        return TargetRefusedError(f"Cluster {cluster}: {error}", reason="KindMissing")
    return TargetRefusedError(f"Cluster {cluster}: {error}", reason=error.reason or "Refused")


def _cluster(cluster_id: str) -> Cluster:
    try:
        return Cluster.objects.get(pk=cluster_id)
    except (Cluster.DoesNotExist, ValidationError, ValueError) as error:
        raise TargetUnavailableError(f"There is no cluster with the id '{cluster_id}'.") from error
