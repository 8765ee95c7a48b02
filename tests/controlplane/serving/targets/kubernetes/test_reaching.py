"""The way to a cluster: whose words errors are in."""

import pytest

from controlplane.serving.targets.base import TargetRefusedError, TargetUnavailableError
from controlplane.serving.targets.kubernetes.reaching import reached, refusal
from inventory.kubernetes.errors import (
    AnswerError,
    Cause,
    ClusterRefusedError,
    ClusterUnavailableError,
    FieldConflictError,
    KindMissingError,
    StaleError,
)
from inventory.models import Cluster
from tests.controlplane.serving.clusters import Place

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_conflict_names_who_holds_which_field() -> None:
    cause = Cause("FieldManagerConflict", 'conflict with "kubectl"', ".spec.replicas")
    conflict = FieldConflictError(message="x", causes=[cause], managers=["kubectl"])

    found = refusal("kr1", conflict)

    assert found.reason == "FieldConflict"
    assert str(found).startswith("Cluster kr1: kubectl holds .spec.replicas. Nothing was changed")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KindMissingError("a/v1", "B"), "KindMissing"),
        (ClusterRefusedError(status=403, reason="Forbidden", message="no"), "Forbidden"),
        (ClusterRefusedError(status=400, reason="", message="no"), "Refused"),
    ],
)
def test_a_refusal_keeps_the_api_servers_reason(error: ClusterRefusedError, reason: str) -> None:
    assert refusal("kr1", error).reason == reason


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ClusterUnavailableError("silent"), TargetUnavailableError),
        (AnswerError("rubbish"), TargetUnavailableError),
        (StaleError(status=409, reason="Conflict", message="changed"), TargetUnavailableError),
        (ClusterRefusedError(status=422, reason="Invalid", message="no"), TargetRefusedError),
    ],
)
def test_errors_of_a_cluster_become_a_targets(
    quiet: Place, error: Exception, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="Cluster c1"), reached(str(quiet.row.pk)):
        raise error


def test_credentials_that_are_not_there_are_told(quiet: Place) -> None:
    Cluster.objects.update(connection_reference="nowhere")

    with pytest.raises(TargetUnavailableError, match="nowhere"), reached(str(quiet.row.pk)):
        raise AssertionError("it opened")
