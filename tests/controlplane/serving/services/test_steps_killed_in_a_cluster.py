"""A worker that dies anywhere in a wave over a cluster: the next run ends in the same state.

The loop runs in a process of its own against a cluster behind a proxy and a router. When the wave
is at the step, and the process makes the call, it is killed with SIGKILL, before the call is passed
on or after it was carried out but not answered.
"""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import services
from controlplane.serving.models import (
    ChangePlan,
    Endpoint,
    Pool,
    RoleAssignment,
    Wave,
    Workload,
)
from tests.controlplane.serving.boundary import Boundary, ScriptedRouter, proxy_of
from tests.controlplane.serving.clusters import Place, make_container_pool
from tests.controlplane.serving.factories import make_applying
from tests.controlplane.serving.killing import KillAt, Worker, finish

pytestmark = [
    pytest.mark.processes, pytest.mark.fake_only, pytest.mark.django_db(transaction=True)
]  # fmt: skip

LIST = r"GET \S+/deployments\?"
PODS = r"GET \S+/pods\?"
READ = r"GET \S+/deployments/"
APPLY = r"PATCH \S+/deployments/"
DELETE = r"DELETE \S+/deployments/"
DOCUMENT = r"PUT /admin/pool-document"
STATE = r"GET /admin/state"
METRICS = r"GET /metrics"
Step = Wave.Step


@pytest.fixture
def proxy(place: Place, settings: Any) -> Iterator[Boundary]:
    """Stands before the cluster, for this process and for workers."""
    proxy = proxy_of(place.cluster.url)
    server = Path(settings.CLUSTER_CREDENTIALS_DIR) / place.row.connection_reference / "server"
    server.write_text(proxy.url)
    yield proxy
    proxy.close()


def kill_and_finish(plan: ChangePlan, killing: KillAt, settings: Any) -> None:
    folder = settings.CLUSTER_CREDENTIALS_DIR

    code = killing.run(Worker(plan.pool, {"CLUSTER_CREDENTIALS_DIR": folder}))
    assert (code, len(killing.calls)) == (-signal.SIGKILL, 1)

    finish(plan)
    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")


@pytest.mark.parametrize(
    ("step", "call", "when"),
    [
        (Step.DRAIN, LIST, "before"),
        (Step.DRAIN, PODS, "after"),
        (Step.DRAIN, DOCUMENT, "before"),
        (Step.DRAIN, DOCUMENT, "after"),
        (Step.DRAIN, STATE, "before"),
        (Step.SWITCH, LIST, "before"),
        (Step.SWITCH, PODS, "after"),
        (Step.START, LIST, "before"),
        (Step.START, LIST, "after"),
        (Step.START, READ, "before"),
        (Step.START, READ, "after"),
        (Step.START, APPLY, "before"),
        (Step.START, APPLY, "after"),
        (Step.START, PODS, "before"),
        (Step.START, PODS, "after"),
        (Step.READY, LIST, "before"),
        (Step.READY, PODS, "after"),
        (Step.START, DOCUMENT, "before"),
        (Step.START, DOCUMENT, "after"),
        (Step.ADD, LIST, "before"),
        (Step.ADD, STATE, "before"),
        (Step.ADD, STATE, "after"),
        (Step.OBSERVE, LIST, "before"),
        (Step.OBSERVE, STATE, "before"),
        (Step.OBSERVE, METRICS, "after"),
    ],
)
def test_a_change_ends_in_the_same_state_wherever_the_worker_is_killed(
    place: Place,
    proxy: Boundary,
    scripted_router: ScriptedRouter,
    settings: Any,
    step: str,
    call: str,
    when: str,
) -> None:
    pool, node = make_container_pool(), place.node()
    finish(make_applying(pool, node, role="both"))
    before = Endpoint.objects.get(state="ready")
    plan = make_applying(pool, node, role="decode", ready_seconds=60.0)

    kill_and_finish(plan, KillAt(plan, step, call, when, proxy, scripted_router.server), settings)

    assert_role_changed_once(pool, plan, before, scripted_router)
    [deployment], [pod] = place.deployments(), place.pods()
    assert pod["metadata"]["labels"]["llm-d.ai/role"] == "decode"
    assert not before.instance.startswith(pod["metadata"]["uid"])
    assert place.engines is not None
    assert len(place.engines.started) == 2
    assert deployment["metadata"]["annotations"]["consort.dev/generation"] == "2"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_release_ends_with_nothing_left_wherever_the_worker_is_killed(
    place: Place, proxy: Boundary, scripted_router: ScriptedRouter, settings: Any, when: str
) -> None:
    pool, node = make_container_pool(), place.node()
    finish(make_applying(pool, node, role="both"))
    plan = make_applying(pool, node, role="")

    killing = KillAt(plan, Step.START, DELETE, when, proxy, scripted_router.server)
    kill_and_finish(plan, killing, settings)

    assert (place.deployments(), place.pods()) == ([], [])
    assert not RoleAssignment.objects.open().exists()
    assert not Endpoint.objects.exclude(state="gone").exists()


def assert_role_changed_once(
    pool: Pool, plan: ChangePlan, before: Endpoint, router: ScriptedRouter
) -> None:
    old, new = RoleAssignment.objects.order_by("valid_from")
    assert (old.role, new.role, new.valid_to) == ("both", "decode", None)
    assert old.valid_to == new.valid_from
    workload, endpoint = Workload.objects.get(), Endpoint.objects.get(state="ready")
    assert workload.generation == workload.observed_generation == 2
    assert (endpoint.role, endpoint.workload) == ("decode", workload)
    before.refresh_from_db()
    assert before.state == "gone"
    latest = pool.documents.order_by("-version").first()
    assert latest is not None
    document = router.documents[pool.slug]
    assert (document["version"], document["hash"]) == (latest.version, latest.sha256)
    [entry] = document["endpoints"]
    assert (entry["role"], entry["instance"]) == ("decode", endpoint.instance)
    assert entry.get("state", "ready") == "ready"
    assert plan.operation is not None
    plan.operation.refresh_from_db()
    assert plan.operation.state == "succeeded"
    assert services.reconcile_pool(pool_id=pool.pk), "the lease is left over"
