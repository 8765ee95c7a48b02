"""Two clusters, and one of them takes requests and never answers."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import services
from controlplane.serving.models import Endpoint, Pool, Workload
from inventory.models import Cluster
from tests.controlplane.serving.clusters import (
    EnginePods,
    Place,
    forget,
    make_container_pool,
    make_place,
)
from tests.controlplane.serving.factories import make_applying
from tests.controlplane.serving.services.test_loop_in_a_cluster import run_to_the_end, told

pytestmark = [
    pytest.mark.processes, pytest.mark.fake_only, pytest.mark.django_db(transaction=True)
]  # fmt: skip

PASSES = 5


@pytest.fixture
def other_place(place: Place, other_cluster: Any, tmp_path: Path) -> Iterator[Place]:
    other = make_place(other_cluster, tmp_path / "credentials", "c2")
    other.engines = EnginePods(other_cluster)
    other_cluster.controllers.start()
    yield other
    other_cluster.controllers.stop()
    other.engines.close()
    forget(other)


def serving(place: Place) -> Pool:
    pool = make_container_pool()
    assert run_to_the_end(make_applying(pool, place.node(), role="both")).state == "succeeded"
    return pool


def middle_seconds(pool: Pool) -> float:
    """How long a pass over the pool takes: the middle one of several."""
    taken = []
    for _ in range(PASSES):
        began = time.perf_counter()
        services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
        taken.append(time.perf_counter() - began)
    return sorted(taken)[PASSES // 2]


def test_the_silent_one_holds_nobody_up_who_does_not_need_it(
    place: Place, other_place: Place, settings: Any
) -> None:
    settings.CLUSTER_TIMEOUT_SECONDS = 1
    lively, dead = serving(place), serving(other_place)
    usual = middle_seconds(lively)

    other_place.cluster.faults.black_hole()
    began = time.monotonic()
    services.reconcile_pool(pool_id=dead.pk, patience_seconds=0)
    first = time.monotonic() - began
    beside = middle_seconds(lively)
    asked = len(other_place.cluster.requests)
    over_all = time.monotonic()
    services.reconcile_pools()
    whole = time.monotonic() - over_all

    assert 1 <= first < 4
    assert beside <= 2 * usual + 0.1
    assert whole < 2, "all pools wait for nobody once the silent cluster is known"
    assert len(other_place.cluster.requests) == asked
    assert Cluster.objects.get(pk=other_place.row.pk).retry_at is not None
    assert told(Workload.objects.get(pool=dead), "TargetReachable") == ("Unknown", "Unavailable")
    assert Endpoint.objects.filter(state="ready").count() == 2


def test_a_pool_over_both_goes_on_with_the_one_that_answers(
    place: Place, other_place: Place, settings: Any
) -> None:
    settings.CLUSTER_TIMEOUT_SECONDS = 1
    pool, here, there = make_container_pool(), place.node(), other_place.node()
    assert run_to_the_end(make_applying(pool, here, there, role="both")).state == "succeeded"
    other_place.cluster.faults.black_hole()

    plan = run_to_the_end(make_applying(pool, here, role="decode", ready_seconds=40.0))

    assert plan.state == "succeeded", plan.outcome
    assert told(Workload.objects.get(node=there), "TargetReachable")[0] == "Unknown"
    assert sorted(Endpoint.objects.filter(state="ready").values_list("role", flat=True)) == [
        "both", "decode"
    ]  # fmt: skip


def test_nodes_of_one_name_in_two_clusters_have_engines_of_two_names(
    place: Place, other_place: Place
) -> None:
    pool = make_container_pool()
    here = place.node(hostname="worker-0")
    there = other_place.node("nvidia-h100-nvl", hostname="worker-0")

    plan = run_to_the_end(make_applying(pool, here, there, role="both"))

    assert plan.state == "succeeded", plan.outcome
    names = Workload.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["worker-0-0.c1", "worker-0-0.c2"]
    assert (len(place.pods()), len(other_place.pods())) == (1, 1)
