"""A whole change in a cluster: objects, Pods with simulated engines, a router."""

import time

import httpx
import pytest

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Endpoint, Pool, Workload
from tests.controlplane.serving.clusters import Place, make_container_pool
from tests.controlplane.serving.factories import make_applying
from tests.controlplane.serving.processes import RouterProcess
from tests.controlplane.serving.services.test_loop import register
from tests.factories import make_inference_key

pytestmark = [
    pytest.mark.processes, pytest.mark.fake_only, pytest.mark.django_db(transaction=True)
]  # fmt: skip


def run_to_the_end(plan: ChangePlan, *, seconds: float = 60) -> ChangePlan:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=1.0)
        plan.refresh_from_db()
        if plan.state != ChangePlan.State.APPLYING:
            return plan
    waves = list(plan.waves.values("position", "state", "step", "detail"))
    raise AssertionError(f"{plan.state}: {waves} {list(Workload.objects.values('conditions'))}")


def told(workload: Workload, kind: str) -> tuple[str, str]:
    row = next(row for row in workload.conditions if row["type"] == kind)
    return row["status"], row["reason"]


def test_engines_of_a_first_assignment_are_objects_that_answer_and_routers_know_them(
    place: Place, router_process: RouterProcess
) -> None:
    make_inference_key()
    register(router_process)
    pool, node = make_container_pool(), place.node(accelerators=2)

    plan = run_to_the_end(make_applying(pool, node, role="both"))

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    endpoints = Endpoint.objects.filter(pool=pool, state="ready").order_by("url")
    addresses = sorted(f"http://{pod['status']['podIP']}:8000" for pod in place.pods())
    assert [endpoint.url for endpoint in endpoints] == addresses
    for endpoint in endpoints:
        assert httpx.get(f"{endpoint.url}/v1/models").json()["data"][0]["id"] == "granite-4.1-8b"
    state = httpx.get(
        f"{router_process.admin_url}/admin/state",
        headers={"Authorization": f"Bearer {router_process.token_file.read_text()}"},
    ).json()
    known = state["pools"][pool.slug]["endpoints"]
    assert sorted(row["id"] for row in known) == sorted(
        f"{node.hostname}-{slot}.c1" for slot in (0, 1)
    )
    for workload in Workload.objects.all():
        for kind in ("TargetReachable", "Applied", "Scheduled", "Started", "Ready", "Serving"):
            assert told(workload, kind)[0] == "True", workload.conditions
        assert told(workload, "Drifted") == ("False", "AsApplied")


def test_a_role_change_replaces_each_engine_and_a_rollback_brings_it_back(place: Place) -> None:
    pool, node = make_container_pool(), place.node(accelerators=2)
    run_to_the_end(make_applying(pool, node, role="both"))
    before = {pod["metadata"]["uid"] for pod in place.pods()}

    plan = run_to_the_end(make_applying(pool, node, role="decode", accelerators_per_wave=1))

    assert plan.state == "succeeded", plan.outcome
    after = {pod["metadata"]["uid"] for pod in place.pods()}
    assert len(after) == 2
    assert not before & after
    roles = {pod["metadata"]["labels"]["llm-d.ai/role"] for pod in place.pods()}
    assert roles == {"decode"}
    assert set(Endpoint.objects.filter(state="ready").values_list("role", flat=True)) == {"decode"}

    services.rollback_plan(plan_id=plan.pk, actor=plan.author, reason="changed our mind")
    plan = run_to_the_end(plan)

    assert plan.state == "rolled_back"
    assert {pod["metadata"]["labels"]["llm-d.ai/role"] for pod in place.pods()} == {
        "prefill-decode"
    }


def test_a_release_ends_with_no_object_left(place: Place) -> None:
    pool, node = make_container_pool(), place.node(accelerators=2)
    run_to_the_end(make_applying(pool, node, role="both"))

    plan = run_to_the_end(make_applying(pool, node, role=""))

    assert plan.state == "succeeded", plan.outcome
    assert (place.deployments(), place.pods()) == ([], [])
    assert not Endpoint.objects.exclude(state="gone").exists()


def test_a_pass_over_what_is_as_it_should_be_writes_nothing_and_asks_twice(place: Place) -> None:
    pool, node = make_container_pool(), place.node(accelerators=4)
    run_to_the_end(make_applying(pool, node, role="both"))
    writes, asked = len(place.cluster.writes), len(place.cluster.requests)

    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)

    kinds = [
        path.partition("?")[0].rpartition("/")[2] for _, path in place.cluster.requests[asked:]
    ]
    assert (len(place.cluster.writes), kinds) == (writes, ["deployments", "pods"])


def test_an_object_that_somebody_deleted_is_made_again(place: Place) -> None:
    pool, node = make_container_pool(), place.node()
    run_to_the_end(make_applying(pool, node, role="both"))
    first = Endpoint.objects.get(state="ready")
    [deployment] = place.deployments()

    place.cluster.delete("apps/v1", "Deployment", deployment["metadata"]["name"], place.namespace)
    until_ready_again(pool, first)

    assert len(place.deployments()) == 1
    first.refresh_from_db()
    assert first.state == "gone"


def until_ready_again(pool: Pool, before: Endpoint) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        services.reconcile_pool(pool_id=pool.pk, patience_seconds=1.0)
        if Endpoint.objects.filter(state="ready").exclude(pk=before.pk).exists():
            return
    raise AssertionError(list(Workload.objects.values("conditions")))
