"""A cluster that does not answer costs little: breaker, places for runs, credentials read anew."""

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from controlplane.operations.models import Lease, OutboxEvent
from inventory.kubernetes.errors import (
    AnswerError,
    ClusterUnavailableError,
    CredentialsError,
    NotFoundError,
)
from inventory.models import Cluster
from inventory.services import clusters
from tests.inventory.factories import make_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(cluster: Any, tmp_path: Path) -> Iterator[Cluster]:
    """The row of the cluster, whose credentials stand in this installation's folder."""
    cluster.write_credentials(tmp_path / "lab")
    with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
        row = make_cluster(kind="kubernetes", connection_reference="lab")
        yield row
        clusters.forget_client(row.pk)


def ask(row: Cluster) -> str:
    """One piece of work, outside any transaction of the caller."""
    with clusters.open_client(row) as client:
        return client.version()


def silent(row: Cluster, cluster: Any) -> None:
    """Let one attempt fail, quickly."""
    cluster.faults.answer(503, "down", times=1)
    with pytest.raises(ClusterUnavailableError, match="down"):
        ask(row)
    row.refresh_from_db()


def due(row: Cluster) -> None:
    """The time of the next attempt has come."""
    Cluster.objects.filter(pk=row.pk).update(retry_at=timezone.now() - timedelta(seconds=1))


def test_an_answer_is_noted_and_the_place_given_back(lab: Cluster) -> None:
    assert ask(lab).startswith("v1.")

    lab.refresh_from_db()
    assert lab.answered_at is not None
    assert (lab.failures, lab.retry_at, lab.error) == (0, None, "")
    assert not Lease.objects.filter(expires_at__gt=timezone.now()).exists()


def test_a_steady_state_writes_no_row(lab: Cluster) -> None:
    ask(lab)
    lab.refresh_from_db()
    noted = lab.updated_at

    ask(lab)

    lab.refresh_from_db()
    assert lab.updated_at == noted


def test_an_object_that_is_missing_is_an_answer(lab: Cluster) -> None:
    with pytest.raises(NotFoundError), clusters.open_client(lab) as client:
        client.get("v1", "Node", "nobody")

    lab.refresh_from_db()
    assert lab.answered_at is not None
    assert lab.failures == 0


@pytest.mark.fake_only
def test_after_a_failure_nobody_asks_before_its_time(lab: Cluster, cluster: Any) -> None:
    silent(lab, cluster)
    asked = len(cluster.requests)

    with pytest.raises(ClusterUnavailableError, match="asked again in") as refused:
        ask(lab)

    assert len(cluster.requests) == asked
    assert 0 < (refused.value.retry_after or 0) <= clusters.FIRST_WAIT_SECONDS
    assert lab.failures == 1
    assert "down" in lab.error


@pytest.mark.fake_only
def test_each_failure_in_a_row_moves_the_next_attempt_away(lab: Cluster, cluster: Any) -> None:
    waits = []
    for _ in range(3):
        silent(lab, cluster)
        assert lab.retry_at is not None
        waits.append((lab.retry_at - timezone.now()).total_seconds())
        due(lab)

    assert [round(wait) for wait in waits] == [5, 10, 20]
    assert lab.failures == 3


@pytest.mark.fake_only
def test_work_that_met_the_same_silence_counts_once(lab: Cluster, cluster: Any) -> None:
    cluster.faults.answer(503, "down", times=3)

    with (
        clusters.open_client(lab) as one,
        clusters.open_client(lab) as two,
        clusters.open_client(lab) as three,
    ):
        for client in (one, two, three):
            with pytest.raises(ClusterUnavailableError):
                client.version()

    lab.refresh_from_db()
    assert lab.failures == 1
    assert OutboxEvent.objects.filter(type="consort.cluster.silent").count() == 1


@pytest.mark.fake_only
def test_an_answer_from_before_the_silence_does_not_end_the_waiting(
    lab: Cluster, cluster: Any
) -> None:
    with clusters.open_client(lab) as client:
        client.version()
        silent(lab, cluster)

    lab.refresh_from_db()
    assert lab.failures == 1
    assert lab.retry_at is not None


@pytest.mark.fake_only
def test_an_answer_after_failures_ends_the_waiting_and_is_told_once(
    lab: Cluster, cluster: Any
) -> None:
    silent(lab, cluster)
    due(lab)

    ask(lab)
    ask(lab)

    lab.refresh_from_db()
    assert (lab.failures, lab.retry_at, lab.error, lab.error_code) == (0, None, "", "")
    types = [event.type for event in OutboxEvent.objects.order_by("pk")]
    assert types == ["consort.cluster.silent", "consort.cluster.answered"]


@pytest.mark.fake_only
def test_the_seconds_that_the_server_asks_for_are_waited(lab: Cluster, cluster: Any) -> None:
    cluster.faults.answer(429, "too many", retry_after=90)
    with pytest.raises(ClusterUnavailableError):
        ask(lab)

    lab.refresh_from_db()
    assert lab.retry_at is not None
    assert lab.retry_at > timezone.now() + timedelta(seconds=80)


@pytest.mark.fake_only
def test_a_failure_that_the_work_swallowed_is_noted_all_the_same(
    lab: Cluster, cluster: Any
) -> None:
    cluster.faults.answer(503, "down", times=1)

    with clusters.open_client(lab) as client:
        for _ in range(3):
            with pytest.raises(ClusterUnavailableError):
                client.version()

    lab.refresh_from_db()
    assert lab.failures == 1


@pytest.mark.fake_only
@override_settings(CLUSTER_TIMEOUT_SECONDS=1)
def test_a_black_hole_costs_a_run_one_time_out(lab: Cluster, cluster: Any) -> None:
    cluster.faults.black_hole()
    started = time.monotonic()

    for _ in range(50):
        with suppress(ClusterUnavailableError), clusters.open_client(lab) as client:
            for name in ("a", "b", "c"):
                with suppress(ClusterUnavailableError):
                    client.get("v1", "Node", name)

    assert time.monotonic() - started < 4
    lab.refresh_from_db()
    assert lab.failures == 1


def test_a_cluster_has_so_many_runs_at_once_and_no_more(lab: Cluster) -> None:
    with (
        override_settings(CLUSTER_RUNS=2),
        clusters.open_client(lab),
        clusters.open_client(lab),
        pytest.raises(ClusterUnavailableError, match="2 pieces of work"),
        clusters.open_client(lab),
    ):
        pass  # pragma: no cover - the third is not let in

    lab.refresh_from_db()
    assert lab.failures == 0
    assert ask(lab)


def test_the_runs_of_one_cluster_leave_those_of_another_alone(lab: Cluster) -> None:
    other = make_cluster(kind="kubernetes", connection_reference="other")

    with (
        override_settings(CLUSTER_RUNS=1),
        clusters.open_client(lab),
        pytest.raises(CredentialsError, match="no folder 'other'"),
    ):
        ask(other)


def test_a_place_of_a_worker_that_died_becomes_free(lab: Cluster) -> None:
    with override_settings(CLUSTER_RUNS=1):
        clusters._take_slot(lab, seconds=-1, places=1)

        assert ask(lab)


@pytest.mark.django_db(transaction=True)
@pytest.mark.fake_only
def test_of_six_runs_at_the_time_of_the_next_attempt_one_asks(
    lab: Cluster, cluster: Any, at_the_same_time: Any
) -> None:
    silent(lab, cluster)
    due(lab)
    cluster.faults.answer(503, "down")
    asked = len(cluster.requests)

    with override_settings(CLUSTER_RUNS=6):
        outcomes = at_the_same_time(6, ask, row=lab)

    assert outcomes == ["ClusterUnavailableError"] * 6
    assert len(cluster.requests) == asked + 1


def test_credentials_that_cannot_be_used_are_noted_and_read_again_at_once(
    lab: Cluster, tmp_path: Path
) -> None:
    names = [path.rename(tmp_path / f"away-{path.name}") for path in (tmp_path / "lab").iterdir()]
    with pytest.raises(CredentialsError):
        ask(lab)
    lab.refresh_from_db()

    assert (lab.error_code, lab.error_facts) == ("credentials-incomplete", {"reference": "lab"})
    assert (lab.failures, lab.retry_at) == (0, None)
    for path in names:
        path.rename(tmp_path / "lab" / path.name.removeprefix("away-"))
    assert ask(lab)
    lab.refresh_from_db()
    assert lab.error == ""


@pytest.mark.fake_only
def test_a_rotated_token_is_used_without_a_restart(tmp_path: Path) -> None:
    from tests.kubernetes.fake.cluster import FakeCluster

    with (
        FakeCluster(token="first") as cluster,
        override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)),
    ):
        cluster.write_credentials(tmp_path / "lab")
        row = make_cluster(kind="kubernetes", connection_reference="lab")
        assert ask(row)
        cluster.server.token = "second"
        (tmp_path / "lab" / "token").write_text("second")

        assert ask(row)
        clusters.forget_client(row.pk)


@pytest.mark.parametrize(
    ("failures", "asked", "expected"),
    [(1, None, 5), (2, None, 10), (7, None, 300), (1000, None, 300), (1, 60.0, 60), (7, 600, 600)],
)
def test_wait(failures: int, asked: float | None, expected: float) -> None:
    error = ClusterUnavailableError("down", retry_after=asked)

    assert clusters.wait_seconds(failures, error) == expected


def test_an_answer_that_lies_is_an_answer(tmp_path: Path) -> None:
    from tests.inventory.kubernetes.answering import answering

    with (
        answering(lambda asked: asked.send([])) as server,
        override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)),
    ):
        (tmp_path / "lab").mkdir()
        (tmp_path / "lab" / "server").write_text(server.url)
        (tmp_path / "lab" / "token").write_text("abc")
        row = make_cluster(kind="kubernetes", connection_reference="lab")
        with pytest.raises(AnswerError):
            ask(row)
        clusters.forget_client(row.pk)

    row.refresh_from_db()
    assert row.failures == 0
