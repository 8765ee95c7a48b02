"""What goes wrong between us and a cluster, and the state in which a change then ends."""

import time
from typing import Any

import pytest
from django.utils import timezone

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Endpoint, Pool, RoleAssignment, Workload
from inventory.models import Cluster
from inventory.services import clusters
from tests.controlplane.serving.clusters import Object, Place, make_container_pool
from tests.controlplane.serving.factories import make_applying
from tests.controlplane.serving.services.test_loop_in_a_cluster import run_to_the_end, told
from tests.kubernetes.fake.kubelets import PodRun

pytestmark = [
    pytest.mark.processes, pytest.mark.fake_only, pytest.mark.django_db(transaction=True)
]  # fmt: skip

DEPLOYMENTS = "/deployments"
WRITES = frozenset({"PATCH"})


def serving(place: Place, **settings: Any) -> tuple[Pool, Any]:
    """A pool with one engine that is ready in role both, and its node."""
    pool, node = make_container_pool(**settings), place.node()
    assert run_to_the_end(make_applying(pool, node, role="both")).state == "succeeded"
    return pool, node


def change(pool: Pool, node: Any, **overrides: Any) -> ChangePlan:
    return make_applying(pool, node, role="decode", **{"ready_seconds": 3.0} | overrides)


def assert_as_before(pool: Pool, plan: ChangePlan, why: str) -> Workload:
    """Rolled back: the engine of before is in the ledger, in its cluster, and ready."""
    assert (plan.state, plan.rolling_back) == ("rolled_back", True), plan.outcome
    assert why in plan.outcome
    assert RoleAssignment.objects.open().get(pool=pool).role == "both"
    endpoint = Endpoint.objects.get(pool=pool, state="ready")
    assert endpoint.role == "both"
    return endpoint.workload


def uids(place: Place) -> set[str]:
    return {pod["metadata"]["uid"] for pod in place.pods()}


def test_a_server_that_is_down_is_waited_for_and_its_engines_go_on(place: Place) -> None:
    pool, node = serving(place)
    plan = change(pool, node, ready_seconds=60.0)
    place.cluster.faults.answer(503, "the server is down")

    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)

    plan.refresh_from_db()
    workload = Workload.objects.get()
    assert plan.state == "applying"
    assert told(workload, "TargetReachable") == ("Unknown", "Unavailable")
    assert Endpoint.objects.exclude(state="gone").count() == 1

    place.cluster.faults.clear()
    clusters.record_answer(place.row.pk)

    assert run_to_the_end(plan).state == "succeeded"


def test_a_server_that_never_answers_costs_one_time_out(place: Place, settings: Any) -> None:
    settings.CLUSTER_TIMEOUT_SECONDS = 1
    pool, _node = serving(place)
    place.cluster.faults.black_hole()
    clusters.forget_client(place.row.pk)

    durations = []
    for _ in range(3):
        began = time.monotonic()
        services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
        durations.append(time.monotonic() - began)

    assert durations[0] < 4
    assert max(durations[1:]) < 1
    assert Endpoint.objects.filter(state="ready").count() == 1


def test_a_slow_server_is_only_slow(place: Place) -> None:
    pool, node = serving(place)
    place.cluster.faults.delay(0.3)

    assert run_to_the_end(change(pool, node, ready_seconds=60.0)).state == "succeeded"


def test_a_server_that_is_asked_too_much_is_left_alone_for_as_long_as_it_says(
    place: Place,
) -> None:
    pool, _node = serving(place)
    place.cluster.faults.answer(429, retry_after=60)
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
    asked = len(place.cluster.requests)

    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)

    retry_at = Cluster.objects.get(pk=place.row.pk).retry_at
    assert len(place.cluster.requests) == asked
    assert retry_at is not None
    assert 50 < (retry_at - timezone.now()).total_seconds() <= 60


def test_a_field_of_somebody_else_stays_theirs_and_the_change_is_rolled_back(place: Place) -> None:
    pool, node = serving(place)
    [found] = place.deployments()
    before = uids(place)

    def take(item: Object) -> None:
        item["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/theirs:2"

    place.cluster.controllers.stop()
    place.cluster.change(
        "apps/v1", "Deployment", found["metadata"]["name"], take,
        namespace=place.namespace, manager="kubectl-edit",
    )  # fmt: skip
    plan = change(pool, node)
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=2.0)

    workload = Workload.objects.get()
    [row] = [row for row in workload.conditions if row["type"] == "Applied"]
    assert (row["status"], row["reason"]) == ("False", "FieldConflict")
    assert "kubectl-edit" in row["message"]
    assert "image" in row["message"]
    plan.refresh_from_db()
    assert plan.rolling_back
    assert "kubectl-edit" in plan.outcome
    [now] = place.deployments()
    container = now["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example/theirs:2"
    assert uids(place) == before
    refused = [write for write in place.cluster.writes if write.status == 409]
    assert len(refused) == 1


def test_a_list_whose_place_is_gone_begins_anew(place: Place) -> None:
    pool, _node = serving(place)
    place.cluster.faults.answer(
        410, "too old resource version", path=DEPLOYMENTS, reason="Expired", times=1
    )

    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)

    assert told(Workload.objects.get(), "TargetReachable")[0] == "True"
    assert Cluster.objects.get(pk=place.row.pk).failures == 0


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (
            lambda place: place.cluster.rights.deny("patch", "deployments", "apps"),
            'cannot patch resource "deployments"',
        ),
        (
            lambda place: place.cluster.faults.webhook_denies("images need a digest", DEPLOYMENTS),
            'admission webhook "policy.example.com" denied the request: images need a digest',
        ),
    ],
    ids=["rights", "webhook"],
)
def test_a_write_that_is_forbidden_is_told_in_the_clusters_words_and_rolled_back(
    place: Place, refusal: Any, words: str
) -> None:
    pool, node = serving(place)
    before = uids(place)
    refusal(place)

    plan = run_to_the_end(change(pool, node))

    workload = assert_as_before(pool, plan, words)
    assert uids(place) == before
    assert (workload.generation, workload.observed_generation) == (3, 3)


def test_a_namespace_that_ends_takes_nothing_and_the_plan_says_so(place: Place) -> None:
    pool, node = make_container_pool(), place.node()
    place.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap",
         "metadata": {"name": "held", "namespace": place.namespace, "finalizers": ["x.test/hold"]}}
    )  # fmt: skip
    place.cluster.delete("v1", "Namespace", place.namespace)

    plan = run_to_the_end(make_applying(pool, node, role="both", ready_seconds=3.0))

    assert plan.state == "rolled_back"
    assert "because it is being terminated" in plan.outcome
    assert not RoleAssignment.objects.open().exists()
    assert place.deployments() == []


def test_a_quota_that_is_spent_is_told_and_rolled_back(place: Place) -> None:
    pool, node = serving(place)
    place.cluster.create(
        {"apiVersion": "v1", "kind": "ResourceQuota",
         "metadata": {"name": "llm", "namespace": place.namespace},
         "spec": {"hard": {"pods": "0"}}}
    )  # fmt: skip
    plan = change(pool, node)
    until_rolling_back(plan)
    for quota in place.cluster.all("v1", "ResourceQuota", place.namespace):
        place.cluster.delete("v1", "ResourceQuota", quota["metadata"]["name"], place.namespace)

    plan = run_to_the_end(plan)

    assert_as_before(pool, plan, "exceeded quota: llm")


def until_rolling_back(plan: ChangePlan, *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not plan.rolling_back:
        services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=0.5)
        plan.refresh_from_db()
    assert plan.rolling_back, list(Workload.objects.values("conditions"))


def test_a_node_without_room_is_told_in_the_schedulers_words(place: Place) -> None:
    pool, node = make_container_pool(), place.node()
    place.cluster.delete("v1", "Node", node.hostname)
    place.cluster.add_node(node.hostname, "amd", resources={"amd.com/gpu": "0"})

    plan = run_to_the_end(make_applying(pool, node, role="both", ready_seconds=3.0))

    assert plan.state == "rolled_back"
    assert "0/1 nodes are available" in plan.outcome
    assert "Insufficient amd.com/gpu" in plan.outcome
    assert (place.deployments(), place.pods()) == ([], [])


def test_an_image_that_no_registry_has_is_rolled_back(place: Place) -> None:
    pool, node = serving(place)
    pool.containers |= {"images": {"amd": "registry.example/amd:typo"}}
    pool.save()
    place.cluster.missing_images.add("registry.example/amd:typo")
    plan = change(pool, node)
    until_rolling_back(plan)
    place.cluster.missing_images.clear()

    plan = run_to_the_end(plan)

    assert_as_before(pool, plan, 'Back-off pulling image "registry.example/amd:typo"')


def test_an_engine_that_crashes_trips_the_guard_with_its_exit_code(place: Place) -> None:
    pool, node = serving(place)
    engines = place.cluster.engine_for

    def crash_decode(pod: Object) -> PodRun | None:
        is_decode = pod["metadata"]["labels"]["llm-d.ai/role"] == "decode"
        return PodRun(fail="OOMKilled") if is_decode else engines(pod)

    place.cluster.engine_for = crash_decode
    plan = change(pool, node, guards={"max_starts": 1}, ready_seconds=30.0)

    plan = run_to_the_end(plan)

    assert_as_before(pool, plan, "was started 2 times; the guard is 1")
    assert "OOMKilled, exit code 137" in plan.outcome


def test_an_engine_with_another_model_is_rolled_back(place: Place) -> None:
    pool, node = serving(place)
    assert place.engines is not None
    place.engines.broken = {"decode": "another-model"}

    plan = run_to_the_end(change(pool, node, ready_seconds=5.0))

    assert_as_before(pool, plan, "lists another-model, not granite-4.1-8b")


def test_an_engine_that_completes_nothing_is_rolled_back(place: Place) -> None:
    pool, node = serving(place)
    assert place.engines is not None
    place.engines.broken = {"decode": "granite-4.1-8b"}

    plan = run_to_the_end(change(pool, node, ready_seconds=5.0))

    assert_as_before(pool, plan, "answered a completion with 500")


def test_a_node_lost_in_the_middle_ends_with_a_sentence_and_the_others_serve(place: Place) -> None:
    pool, node = serving(place)
    other = place.node()
    assert run_to_the_end(make_applying(pool, other, role="both")).state == "succeeded"
    plan = change(pool, other)
    place.cluster.lose_node(other.hostname)
    for pod in place.pods():
        if pod["spec"]["nodeName"] == other.hostname and place.engines is not None:
            place.engines.kill(pod["metadata"]["uid"])

    plan = run_to_the_end(plan, seconds=90)

    assert plan.state == "failed"
    assert "Roll back again, or make a plan" in plan.outcome
    assert Endpoint.objects.filter(node=node, state="ready").count() == 1
    assert not Endpoint.objects.filter(node=other).exclude(state="gone").exists()
    lost = Workload.objects.get(node=other)
    assert told(lost, "Started")[1] in {"Unschedulable", "NodeLost", "OldPodEnding"}
