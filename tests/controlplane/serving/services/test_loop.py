"""A whole change against real processes: engine host, simulated engines, a router."""

import time

import httpx
import pytest

from controlplane.operations.models import Operation
from controlplane.serving import services
from controlplane.serving.enginehost import process
from controlplane.serving.models import (
    ChangePlan,
    Endpoint,
    Pool,
    ProbeRecord,
    RoleAssignment,
    RouterPush,
    Workload,
)
from controlplane.telemetry.models import ScrapeTarget
from tests.controlplane.serving.factories import make_applying, make_fleet_node, make_pool
from tests.controlplane.serving.processes import EngineHost, RouterProcess
from tests.factories import make_inference_key, make_olga

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def run_to_the_end(plan: ChangePlan, *, seconds: float = 60) -> ChangePlan:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=1.0)
        plan.refresh_from_db()
        if plan.state != ChangePlan.State.APPLYING:
            # One more run reports the end to the operation once the claim has lapsed.
            return plan
    waves = list(plan.waves.values("position", "state", "step", "detail"))
    raise AssertionError(f"{plan.state}: {waves} {list(Workload.objects.values('conditions'))}")


def register(router: RouterProcess) -> None:
    services.register_router(
        name=router.name, admin_url=router.admin_url, public_url=router.public_url,
        token_reference=f"file:{router.token_file}", actor=None,
    )  # fmt: skip


def test_a_first_assignment_starts_engines_that_answer(engine_host: EngineHost) -> None:
    pool, node = make_pool(), make_fleet_node()

    plan = run_to_the_end(make_applying(pool, node, role="both"))

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    endpoints = Endpoint.objects.filter(pool=pool, state="ready")
    assert endpoints.count() == 2
    for endpoint in endpoints:
        assert httpx.get(f"{endpoint.url}/v1/models").json()["data"][0]["id"] == "granite-4.1-8b"
        assert endpoint.probes.count() == 2
    assert ScrapeTarget.objects.filter(active=True).count() == 2
    assert RoleAssignment.objects.open().get().role == "both"


def test_a_role_change_replaces_processes_and_a_rollback_brings_the_roles_back(
    engine_host: EngineHost, router_process: RouterProcess
) -> None:
    make_inference_key()
    register(router_process)
    pool = make_pool()
    nvidia, amd = make_fleet_node("nvidia-h100-nvl"), make_fleet_node(accelerators=1)
    run_to_the_end(make_applying(pool, amd, role="decode"))
    run_to_the_end(make_applying(pool, nvidia, role="prefill"))
    old = {row.workload.name: row.pid for row in Endpoint.objects.filter(role="prefill")}
    version = pool.documents.count()

    plan = run_to_the_end(make_applying(pool, nvidia, role="decode", accelerators_per_wave=1))

    assert plan.state == "succeeded", plan.outcome
    assert [wave.state for wave in plan.waves.all()] == ["succeeded", "succeeded"]
    for endpoint in Endpoint.objects.filter(node=nvidia, state="ready"):
        assert endpoint.role == "decode"
        assert process.start_ticks(old[endpoint.workload.name]) is None
    state = httpx.get(
        f"{router_process.admin_url}/admin/state",
        headers={"Authorization": f"Bearer {router_process.token_file.read_text()}"},
    ).json()
    latest = pool.documents.order_by("-version").first()
    assert latest is not None
    assert latest.version > version
    assert state["documents"][0]["version"] == latest.version
    assert state["documents"][0]["hash"] == latest.sha256
    assert set(RouterPush.objects.filter(document=latest).values_list("state", flat=True)) == {
        "acknowledged"
    }

    services.rollback_plan(plan_id=plan.pk, actor=make_olga(), reason="changed our mind")
    plan = run_to_the_end(plan)

    assert plan.state == "rolled_back"
    roles = Endpoint.objects.filter(node=nvidia, state="ready").values_list("role", flat=True)
    assert list(roles) == ["prefill", "prefill"]
    ledger = RoleAssignment.objects.filter(node=nvidia).order_by("valid_from", "role")
    assert {row.role for row in ledger} == {"prefill", "decode"}
    assert all(row.valid_to for row in ledger.exclude(members__open=True))
    assert ProbeRecord.objects.filter(endpoint__node=nvidia).exists()


def test_the_operation_of_a_plan_ends_with_it(engine_host: EngineHost) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    plan = run_to_the_end(make_applying(pool, node, role="both"))

    operation = Operation.objects.get(pk=plan.operation_id)

    assert operation.state == "succeeded"
    assert operation.steps.get().detail == "succeeded"


def test_engines_that_die_are_started_again_as_another_instance(engine_host: EngineHost) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    run_to_the_end(make_applying(pool, node, role="both"))
    first = Endpoint.objects.get(state="ready")
    assert first.pid is not None

    process.end(process.ProcessId(first.pid, process.start_ticks(first.pid) or 0), grace_seconds=0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        services.reconcile_pool(pool_id=pool.pk)
        if Endpoint.objects.filter(state="ready").exclude(pk=first.pk).exists():
            break

    first.refresh_from_db()
    second = Endpoint.objects.get(state="ready")
    assert (first.state, second.workload) == ("gone", first.workload)
    assert first.instance != second.instance
    assert Pool.objects.get(pk=pool.pk).reconciled_at is not None
