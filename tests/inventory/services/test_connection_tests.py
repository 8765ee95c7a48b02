"""A test of a connection finds out version, kinds and rights, and says why when it cannot."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone, translation

from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import Operation
from inventory import selectors, services
from inventory.errors import ClusterNotTestableError
from inventory.kubernetes import wanted
from inventory.models import Cluster
from inventory.services import clusters
from tests.factories import make_ben, make_olga
from tests.inventory.factories import make_cluster
from tests.inventory.kubernetes.answering import answering

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of credentials of this installation."""
    with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
        yield tmp_path


@pytest.fixture
def lab(cluster: Any, folder: Path) -> Iterator[Cluster]:
    """The row of the cluster."""
    cluster.write_credentials(folder / "lab")
    row = make_cluster(kind="kubernetes", connection_reference="lab")
    yield row
    clusters.forget_client(row.pk)


def run(row: Cluster) -> Operation:
    operation = services.start_connection_test(cluster_id=row.pk, actor=make_olga())
    services.run_connection_test(operation_id=operation.pk)
    operation.refresh_from_db()
    row.refresh_from_db()
    return operation


def test_version_kinds_and_rights_are_found_out_and_kept(lab: Cluster) -> None:
    operation = run(lab)

    assert operation.state == "succeeded"
    assert lab.version.startswith("v1.")
    assert lab.serves("apps/v1", "Deployment") is True
    assert lab.missing_rights == []
    assert lab.tested_at is not None
    assert {step.state for step in operation.steps.all()} == {"succeeded"}


@pytest.mark.fake_only
def test_kinds_that_are_not_installed_and_rights_that_are_missing_are_named(
    folder: Path,
) -> None:
    from tests.kubernetes.fake.cluster import FakeCluster

    with FakeCluster(missing=["gateway-api"]) as cluster:
        cluster.write_credentials(folder / "lab")
        cluster.rights.deny("patch", "deployments", "apps")
        row = make_cluster(kind="kubernetes", connection_reference="lab", namespace="serving")
        run(row)
        clusters.forget_client(row.pk)

    assert row.missing_rights == ["patch deployments.apps in serving"]
    missing = {kind.kind: kind.brings for kind in wanted.missing(row.kinds)}
    assert missing == {"HTTPRoute": "Gateway API 1.6.1"}


def test_a_person_is_kept_waiting_neither_by_failures_nor_by_other_work(lab: Cluster) -> None:
    with override_settings(CLUSTER_RUNS=1), clusters.open_client(lab):
        Cluster.objects.filter(pk=lab.pk).update(
            failures=9, retry_at=timezone.now() + timedelta(minutes=5), error="down"
        )
        operation = run(lab)

    assert operation.state == "succeeded"
    assert (lab.failures, lab.retry_at, lab.error) == (0, None, "")


@pytest.mark.fake_only
def test_a_server_that_is_down_fails_the_test_and_counts(lab: Cluster, cluster: Any) -> None:
    cluster.faults.answer(503, "etcd is away")

    operation = run(lab)

    assert operation.state == "failed"
    assert operation.error["code"] == "cluster-test-failed"
    assert "does not answer. etcd is away" in operation.error["detail"]
    assert lab.failures == 1
    assert lab.version == ""


@pytest.mark.fake_only
def test_a_token_that_is_not_accepted_fails_the_test(folder: Path) -> None:
    from tests.kubernetes.fake.cluster import FakeCluster

    with FakeCluster(token="right") as cluster:
        cluster.write_credentials(folder / "lab")
        (folder / "lab" / "token").write_text("wrong")
        row = make_cluster(kind="kubernetes", connection_reference="lab")
        operation = run(row)
        clusters.forget_client(row.pk)

    assert operation.state == "failed"
    assert "refuses" in operation.error["detail"]
    assert "still good" in operation.error["hint"]
    assert row.error_code == "cluster-refused"
    assert row.failures == 0


def test_something_that_is_no_api_server_fails_the_test(folder: Path) -> None:
    with answering(lambda asked: asked.send(b"<html>hello</html>")) as server:
        (folder / "lab").mkdir()
        (folder / "lab" / "server").write_text(server.url)
        (folder / "lab" / "token").write_text("abc")
        row = make_cluster(kind="kubernetes", connection_reference="lab")
        operation = run(row)
        clusters.forget_client(row.pk)

    assert "not an API server" in operation.error["detail"]
    assert row.error_code == "cluster-answer"
    assert row.tested_at is None


def test_credentials_that_cannot_be_used_fail_the_test_in_the_readers_words(folder: Path) -> None:
    row = make_cluster(kind="kubernetes", connection_reference="lab")

    operation = run(row)

    assert operation.state == "failed"
    assert "holds no folder 'lab'" in operation.error["detail"]
    assert row.error_code == "credentials-missing"


def test_the_second_click_gets_the_test_that_runs() -> None:
    row, olga = make_cluster(kind="kubernetes", connection_reference="lab"), make_olga()

    first = services.start_connection_test(cluster_id=row.pk, actor=olga)
    second = services.start_connection_test(cluster_id=row.pk, actor=olga)

    assert first.pk == second.pk
    assert selectors.running_test(row) == first


def test_delivering_the_task_twice_tests_once(folder: Path) -> None:
    row = make_cluster(kind="kubernetes", connection_reference="lab")
    operation = run(row)

    services.run_connection_test(operation_id=operation.pk)

    operation.refresh_from_db()
    assert operation.attempt == 1


def test_a_cluster_without_an_api_server_cannot_be_tested() -> None:
    with pytest.raises(ClusterNotTestableError), translation.override("en"):
        services.start_connection_test(cluster_id=make_cluster().pk, actor=make_olga())


def test_ben_tests_nothing() -> None:
    row = make_cluster(kind="kubernetes", connection_reference="lab")

    with pytest.raises(NotPermittedError):
        services.start_connection_test(cluster_id=row.pk, actor=make_ben())
