"""Checks of plans: verdicts with their numbers and sentences."""

import sys
from types import ModuleType
from typing import Any

import pytest
from django.utils import timezone

from controlplane.serving.checks import assignments, cluster, contracts, engine, floor, memory
from controlplane.serving.checks.base import blocking, check_name, run_checks
from controlplane.serving.models import ChangePlan
from inventory.models import Accelerator
from tests.controlplane.serving.clusters import make_container_pool
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_accelerator_model,
    make_assigned,
    make_draft,
    make_fleet_node,
    make_pool,
    make_serving_model,
)
from tests.controlplane.serving.rows import make_workload
from tests.inventory.factories import make_cluster

pytestmark = pytest.mark.django_db


def test_weights_that_do_not_fit_block() -> None:
    pool = make_pool(model=make_serving_model(weight_bytes=300 * 10**9))
    plan = make_draft(pool, make_fleet_node())

    result = memory.check(plan)

    assert result.verdict == "block"
    assert "do not fit into the memory of amd-mi325x" in result.sentence


def test_little_room_for_kv_warns_and_much_passes_with_the_tokens() -> None:
    tight = make_draft(
        make_pool(model=make_serving_model(weight_bytes=210 * 10**9)), make_fleet_node()
    )
    make_serving_model()
    roomy = make_draft(make_pool(), make_fleet_node())

    assert memory.check(tight).verdict == "warn"
    result = memory.check(roomy)
    assert result.verdict == "pass"
    assert result.numbers["kv_tokens"]["amd-mi325x"] > 1_000_000


def test_an_engine_that_does_not_run_on_a_vendor_blocks() -> None:
    plan = make_draft(make_pool(engine="sglang"), make_fleet_node("intel-gaudi3"))

    result = engine.check(plan)

    assert (result.verdict, result.numbers["vendors"]) == ("block", {"intel-gaudi": False})


def test_a_target_that_cannot_start_engines_warns() -> None:
    plan = make_draft(make_pool(), make_fleet_node(kind="static"))

    result = engine.check(plan)

    assert result.verdict == "warn"
    assert "run by somebody else" in result.sentence


def test_an_accelerator_of_another_pool_blocks_with_its_name() -> None:
    node, other = make_fleet_node(), make_pool()
    make_assigned(other, node)
    plan = make_draft(make_pool(), node)

    result = assignments.check(plan)

    assert result.verdict == "block"
    assert f"serves pool {other.name}; release it there first" in result.sentence


@pytest.mark.parametrize(
    ("on", "state", "sentence"),
    [("node", "cordoned", "is cordoned"), ("accelerator", "cordoned", "is cordoned")],
)
def test_what_takes_no_new_role_blocks(on: str, state: str, sentence: str) -> None:
    node = make_fleet_node(accelerators=1)
    row: Any = node if on == "node" else accelerators_of(node)[0]
    row.state = state
    row.save()

    result = assignments.check(make_draft(make_pool(), node))

    assert result.verdict == "block"
    assert sentence in result.sentence


def test_a_unified_pool_knows_one_role() -> None:
    plan = make_draft(make_pool(role_mode="unified"), make_fleet_node(), role="decode")

    assert "is unified" in assignments.check(plan).sentence


def test_a_failing_accelerator_warns() -> None:
    node = make_fleet_node(accelerators=1)
    (accelerator,) = accelerators_of(node)
    accelerator.health, accelerator.health_reason = "degraded", "vendor-report"
    accelerator.save()

    result = assignments.check(make_draft(make_pool(), node))

    assert (result.verdict, "Not healthy" in result.sentence) == ("warn", True)


def test_a_node_that_nobody_observed_lately_warns_and_an_observed_one_passes() -> None:
    node = make_fleet_node(accelerators=1)
    draft = make_draft(make_pool(), node)

    unseen = assignments.check(draft)
    node.observed_at = timezone.now()
    node.save()
    seen = assignments.check(draft)

    assert (unseen.verdict, node.hostname in unseen.sentence) == ("warn", True)
    assert seen.verdict == "pass"


@pytest.mark.parametrize(
    ("share", "per_wave", "verdict"), [(0.5, 1, "pass"), (0.5, 2, "block"), (1.0, 1, "block")]
)
def test_a_wave_below_the_floor_blocks(share: float, per_wave: int, verdict: str) -> None:
    pool, node, other = make_pool(), make_fleet_node(), make_fleet_node(accelerators=1)
    make_assigned(pool, node)
    make_assigned(pool, other)
    plan = make_draft(pool, node, role="decode", floor_share=share, accelerators_per_wave=per_wave)

    result = floor.check(plan)

    # A share of decode without prefill is a warning, which is not what this test is about.
    assert ("block" if result.verdict == "block" else "pass") == verdict
    assert result.numbers["serving"] == 3


def test_a_pool_of_prefill_only_could_answer_nobody() -> None:
    plan = make_draft(make_pool(), make_fleet_node(), role="prefill")

    assert "no accelerator could answer" in floor.check(plan).sentence


def test_pairs_of_vendors_pass_through_host_memory_at_a_cost() -> None:
    pool = make_pool()
    make_assigned(pool, make_fleet_node(), role="decode")
    plan = make_draft(pool, make_fleet_node("nvidia-h100-nvl"), role="prefill")

    result = contracts.check(plan)

    (row,) = result.numbers["pairs"]
    assert (row["prefill"], row["decode"]) == ("nvidia-h100-nvl", "amd-mi325x")
    assert (row["verdict"], row["staging"]) == ("compatible_with", "cpu")
    # 163,840 bytes per token over 10 GB/s, three passes.
    assert row["seconds_per_1000_tokens"] == pytest.approx(0.049152)
    assert (result.verdict, "0.049 s" in result.sentence) == ("pass", True)


def test_pairs_that_cannot_work_block() -> None:
    pool = make_pool(engine="vllm")
    make_assigned(pool, make_fleet_node(), role="decode")
    plan = make_draft(pool, make_fleet_node("nvidia-h100-nvl"), role="prefill")

    result = contracts.check(plan)

    assert result.verdict == "block"
    assert "attention_backend" in result.sentence


def test_a_check_that_cannot_be_loaded_or_that_fails_blocks(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = ModuleType("broken_checks")
    broken.check = lambda _plan: 1 / 0  # type: ignore[attr-defined]  # a module made for the test
    monkeypatch.setitem(sys.modules, "broken_checks", broken)
    settings.PLAN_CHECKS = ["controlplane.nowhere.power.check", "x.broken_checks.check"]
    monkeypatch.setitem(sys.modules, "x", ModuleType("x"))
    monkeypatch.setitem(sys.modules, "x.broken_checks", broken)

    rows = run_checks(ChangePlan())

    assert [row["verdict"] for row in rows] == ["block", "block"]
    assert [row["name"] for row in rows] == ["power", "broken_checks"]
    assert "cannot be loaded" in rows[0]["sentence"]
    assert blocking(rows) == rows[0]["sentence"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("controlplane.serving.checks.memory.check", "memory"),
        ("controlplane.finance.checks.check", "finance"),
    ],
)
def test_a_check_is_called_after_its_file_or_its_app(path: str, name: str) -> None:
    assert check_name(path) == name


def test_figures_that_are_not_known_block_with_the_name() -> None:
    node = make_fleet_node()
    make_accelerator_model(memory_bytes=None)

    result = memory.check(make_draft(make_pool(), node))

    assert result.verdict == "block"
    assert "amd-mi325x is not known" in result.sentence


def test_a_replaced_card_is_released_before_the_next_one_gets_its_engine() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    (old,) = accelerators_of(node)
    make_assigned(pool, node)
    make_workload(old, pool=pool)
    old.state, old.retired_at = "retired", timezone.now()
    old.save()
    fresh = Accelerator.objects.create(
        node=node, model=old.model, vendor=old.vendor, slot=old.slot, serial="fresh"
    )

    blocked = make_draft(pool, accelerator_ids=[fresh.pk])
    released = make_draft(pool, accelerator_ids=[old.pk], role="")

    assert (
        "belongs to another accelerator; release that first" in assignments.check(blocked).sentence
    )
    assert assignments.check(released).verdict == "pass"


def test_an_engine_over_more_accelerators_than_it_is_started_on_blocks() -> None:
    pool = make_pool(engine="vllm", engine_arguments={"tensor-parallel-size": 4})
    plan = make_draft(pool, make_fleet_node("nvidia-h100-nvl"))

    result = engine.check(plan)

    assert result.verdict == "block"
    assert "over 4 accelerators" in result.sentence


def on_kubernetes(**facts: Any) -> ChangePlan:
    row = make_cluster(kind="kubernetes", slug="kr1", **facts)
    return make_draft(make_container_pool(), make_fleet_node(cluster=row))


def test_a_plan_without_kubernetes_passes() -> None:
    result = cluster.check(make_draft(make_pool(), make_fleet_node()))

    assert (result.verdict, result.numbers) == ("pass", {"clusters": {}})


def test_a_pool_that_says_too_little_of_containers_blocks_with_the_field() -> None:
    node = make_fleet_node(cluster=make_cluster(kind="kubernetes"))

    result = cluster.check(make_draft(make_pool(), node))

    assert result.verdict == "block"
    assert "containers.images.amd" in result.sentence


def test_a_cluster_that_nobody_tested_warns() -> None:
    result = cluster.check(on_kubernetes(kinds=None))

    assert result.verdict == "warn"
    assert "kr1" in result.sentence


def test_a_kind_that_is_missing_blocks_with_what_brings_it() -> None:
    result = cluster.check(on_kubernetes(kinds=[["v1", "Pod"]]))

    assert result.verdict == "block"
    assert result.sentence == "Cluster kr1 has no Deployment. It comes with: apps/v1."


def test_rights_that_serving_needs_block_and_others_do_not() -> None:
    kinds = [["apps/v1", "Deployment"]]
    blocked = on_kubernetes(kinds=kinds, missing_rights=["patch deployments.apps in llm"])

    result = cluster.check(blocked)

    assert result.verdict == "block"
    assert "patch deployments.apps in llm" in result.sentence


def test_a_cluster_that_can_all_that_is_needed_passes() -> None:
    kinds = [["apps/v1", "Deployment"]]

    result = cluster.check(on_kubernetes(kinds=kinds, missing_rights=["list nodes"]))

    assert (result.verdict, result.numbers) == ("pass", {"clusters": {"kr1": 1}})


def test_what_the_patch_changes_is_shown_as_a_difference_and_nothing_else_is() -> None:
    plan = on_kubernetes(kinds=[["apps/v1", "Deployment"]])
    patch = {"spec": {"template": {"spec": {"priorityClassName": "inference"}}}}
    plan.pool.containers = {**plan.pool.containers, "patches": {plan.role: patch}}

    lines = cluster.check(plan).numbers["patch"].splitlines()

    changed = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert changed == ["+      priorityClassName: inference"]


def test_a_patch_that_takes_over_what_consort_decides_blocks_the_plan() -> None:
    plan = on_kubernetes(kinds=[["apps/v1", "Deployment"]])
    patch = {"spec": {"replicas": 9}}
    plan.pool.containers = {**plan.pool.containers, "patches": {plan.role: patch}}

    result = cluster.check(plan)

    assert result.verdict == "block"
    assert "/spec/replicas" in result.sentence
