"""Waves that do not go as planned: refusals, guards, engines that do not come."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.operations import services as operations
from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Endpoint, Pool, RoleAssignment
from controlplane.serving.services import holding
from inventory.models import Node
from tests.controlplane.serving.boundary import ScriptedRouter
from tests.controlplane.serving.factories import make_applying, make_fleet_node, make_pool
from tests.controlplane.serving.processes import EngineHost, secret_file
from tests.factories import make_admin

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def router(tmp_path: Path) -> Iterator[ScriptedRouter]:
    router = ScriptedRouter()
    services.register_router(
        name="r1", admin_url=router.url, public_url=router.url, actor=None,
        token_reference=f"file:{secret_file(tmp_path / 'r1')}",
    )  # fmt: skip
    yield router
    router.close()


@pytest.fixture
def served(engine_host: EngineHost, router: ScriptedRouter) -> tuple[Pool, Node]:
    """A pool with one engine of role both, on every router."""
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    plan = run(make_applying(pool, node, role="both"))
    assert plan.state == "succeeded", plan.outcome
    return pool, node


def run(plan: ChangePlan, *, seconds: float = 60) -> ChangePlan:
    deadline = time.monotonic() + seconds
    while plan.state == ChangePlan.State.APPLYING and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=0.5)
        plan.refresh_from_db()
    return plan


def run_to_step(plan: ChangePlan, step: str, *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while plan.waves.get().step != step and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=0)
    assert plan.waves.get().step == step


def roles(node: Node) -> list[str]:
    rows = RoleAssignment.objects.filter(node=node).order_by("valid_from")
    return [row.role for row in rows]


def test_a_tripped_guard_rolls_back_by_itself_and_the_ledger_shows_both_changes(
    served: tuple[Pool, Node], router: ScriptedRouter
) -> None:
    pool, node = served
    plan = make_applying(pool, node, role="decode", soak_seconds=60.0)
    run_to_step(plan, "observe")
    router.requests = {"total": 100, "failed": 10}

    plan = run(plan)

    assert plan.state == "rolled_back"
    assert plan.outcome == "10.0% of 100 requests failed; the guard is 5.0%."
    assert roles(node) == ["both", "decode", "both"]
    assert Endpoint.objects.get(state="ready").role == "both"
    assert plan.operation is not None
    plan.operation.refresh_from_db()
    assert (plan.operation.state, plan.operation.error["detail"]) == (
        "failed",
        f"PlanFailedError: {plan.outcome}",
    )


def test_a_router_that_refuses_rolls_the_wave_back_with_the_pointer(
    served: tuple[Pool, Node], router: ScriptedRouter
) -> None:
    pool, node = served
    refusal = {"code": "document-refused", "pointer": "/endpoints/0/state", "detail": "No."}
    router.refusal = (422, refusal)
    plan = make_applying(pool, node, role="decode")
    deadline = time.monotonic() + 30
    while not plan.rolling_back and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
        plan.refresh_from_db()
    router.refusal = None

    plan = run(plan)

    assert (plan.state, roles(node)) == ("rolled_back", ["both"])
    assert "refused document version" in plan.outcome
    assert "'/endpoints/0/state': No." in plan.outcome
    assert Endpoint.objects.get(state="ready").role == "both"


def test_running_requests_are_waited_for_and_cut_off_after_the_longest_drain(
    served: tuple[Pool, Node], router: ScriptedRouter
) -> None:
    pool, node = served
    router.inflight = 3
    plan = make_applying(pool, node, role="decode", drain_seconds=3.0)

    plan = run(plan)

    assert plan.state == "succeeded"
    assert plan.waves.get().detail["cut_off"] == 3


def test_an_engine_that_does_not_come_up_rolls_the_wave_back(
    served: tuple[Pool, Node], engine_host: EngineHost
) -> None:
    _pool, node = served
    # A model that the simulated engine has no profile of: it ends at once.
    other = make_pool(slug="other")
    Pool.objects.filter(pk=other.pk).update(engine_arguments={"kv-tokens": 1})
    other.refresh_from_db()
    spare = make_fleet_node(accelerators=1)
    plan = make_applying(other, spare, role="both", guards={"max_starts": 1})

    plan = run(plan)

    assert plan.state == "rolled_back"
    assert "was started 2 times; the guard is 1" in plan.outcome
    assert not RoleAssignment.objects.open().filter(node=spare).exists()
    assert Endpoint.objects.filter(node=node, state="ready").exists()


def test_a_router_that_never_answers_does_not_hold_a_wave_up_for_ever(
    served: tuple[Pool, Node], router: ScriptedRouter, tmp_path: Path
) -> None:
    pool, node = served
    services.register_router(
        name="r2", admin_url="http://127.0.0.1:1", public_url="http://127.0.0.1:1", actor=None,
        token_reference=f"file:{secret_file(tmp_path / 'r2')}",
    )  # fmt: skip

    plan = run(make_applying(pool, node, role="decode"))

    assert plan.state == "succeeded"
    assert plan.waves.get().detail["routers_away"] == ["r2"]


def test_a_released_accelerator_has_no_engine_and_no_role(
    served: tuple[Pool, Node], engine_host: EngineHost
) -> None:
    pool, node = served

    plan = run(make_applying(pool, node, role=""))

    assert plan.state == "succeeded"
    assert not Endpoint.objects.live().exists()
    assert not RoleAssignment.objects.open().exists()
    assert [row["state"] for row in engine_host.client.get("/engines").json()["engines"]] == [
        "absent"
    ]


def test_a_paused_plan_begins_no_wave_and_a_cancelled_one_drops_the_rest(
    engine_host: EngineHost,
) -> None:
    pool, node = make_pool(), make_fleet_node()
    plan = make_applying(pool, node, role="both", accelerators_per_wave=1)
    services.pause_plan(plan_id=plan.pk, actor=plan.author)
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
    paused = list(plan.waves.values_list("state", flat=True))
    services.resume_plan(plan_id=plan.pk, actor=plan.author)
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
    services.cancel_plan(plan_id=plan.pk, actor=plan.author)

    plan = run(plan)

    assert paused == ["pending", "pending"]
    assert (plan.state, plan.outcome) == ("cancelled", "Cancelled after 1 of 2 waves.")
    assert list(plan.waves.values_list("state", flat=True)) == ["succeeded", "skipped"]


def test_one_run_at_a_time_acts_for_a_pool(served: tuple[Pool, Node]) -> None:
    pool, _ = served
    hold = holding.take(pool)
    assert hold is not None

    second = services.reconcile_pool(pool_id=pool.pk)
    holding.release(hold)

    assert second is False
    assert services.reconcile_pool(pool_id=pool.pk) is True


def test_cancelling_the_operation_of_a_plan_drops_the_waves_that_have_not_begun(
    engine_host: EngineHost,
) -> None:
    pool, node = make_pool(), make_fleet_node()
    plan = make_applying(pool, node, role="both", accelerators_per_wave=1)
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
    assert plan.operation_id is not None
    operations.request_cancel(operation_id=plan.operation_id, actor=make_admin())

    plan = run(plan)

    assert (plan.state, plan.outcome) == ("cancelled", "Cancelled after 1 of 2 waves.")
    assert plan.operation is not None
    plan.operation.refresh_from_db()
    assert plan.operation.state == "cancelled"


@pytest.mark.parametrize("step", ["start", "observe"])
def test_a_killed_engine_host_costs_time_only(
    served: tuple[Pool, Node], engine_host: EngineHost, settings: Any, step: str
) -> None:
    pool, node = served
    plan = make_applying(pool, node, role="decode", soak_seconds=1.0)
    run_to_step(plan, step)

    engine_host.kill()
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
    engine_host.start()
    settings.ENGINE_HOST_URL = engine_host.url
    plan = run(plan)

    assert (plan.state, roles(node)) == ("succeeded", ["both", "decode"])
    endpoint = Endpoint.objects.get(state="ready")
    assert endpoint.instance == engine_host.seen(endpoint.workload.name)["instance"]


def test_an_engine_killed_while_it_is_observed_comes_back_and_the_change_goes_on(
    served: tuple[Pool, Node],
) -> None:
    pool, node = served
    plan = make_applying(pool, node, role="decode", soak_seconds=3.0)
    run_to_step(plan, "observe")
    first = Endpoint.objects.get(state="ready")
    assert first.pid is not None

    os.kill(first.pid, signal.SIGKILL)
    plan = run(plan)
    deadline = time.monotonic() + 30
    while not Endpoint.objects.filter(state="ready").exists() and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=pool.pk)

    second = Endpoint.objects.get(state="ready")
    assert (plan.state, roles(node)) == ("succeeded", ["both", "decode"])
    assert (second.role, second.instance != first.instance) == ("decode", True)
