"""Settings of a pool, from what a person states to the next document."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.serving import services
from controlplane.serving.errors import (
    ContainersRefusedError,
    GatewayRulesRefusedError,
    PoolRetiredError,
    SloRefusedError,
)
from controlplane.serving.models import Pool, PoolDocument
from controlplane.serving.services.publishing import document_of
from tests.controlplane.serving.factories import make_pool
from tests.factories import make_ben, make_inference_key, make_olga

pytestmark = pytest.mark.django_db

CANARY = {
    "models": ["chat"],
    "targets": [{"model": "granite", "weight": 90}, {"model": "granite-legal", "weight": 10}],
}


def test_a_change_keeps_what_was_left_out_and_says_why(sent_tasks: list[object]) -> None:
    pool = make_pool(objectives={"batch": -1})
    olga = make_olga()

    services.change_gateway_rules(
        pool_id=pool.pk, changes={"rewrites": [CANARY]}, reason="canary", actor=olga
    )

    pool.refresh_from_db()
    entry = AuditEntry.objects.get(action="pool.gateway-rules")
    assert (pool.objectives, pool.rewrites) == ({"batch": -1}, [CANARY])
    assert (entry.actor, entry.reason) == (olga, "canary")
    assert entry.before["rewrites"] == []


def test_a_change_nudges_the_loop(
    sent_tasks: list[object], django_capture_on_commit_callbacks: Any
) -> None:
    pool = make_pool()
    sent_tasks.clear()

    with django_capture_on_commit_callbacks(execute=True):
        services.change_gateway_rules(
            pool_id=pool.pk, changes={"objectives": {"a": 1}}, actor=make_olga()
        )

    assert sent_tasks == [("controlplane.serving.tasks.reconcile_pool", (str(pool.pk),))]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"objectives": {"a": 2**31}}, "/objectives"),
        ({"objectives": {"": 1}}, "/objectives"),
        ({"rewrites": [{"models": ["chat"], "targets": []}]}, "/rewrites/0/targets"),
        ({"rewrites": [{"targets": [{"model": "a", "weight": 0}]}]},
         "/rewrites/0/targets/0/weight"),
        ({"rewrites": [{"targets": [{"model": "a", "weight": 1}, {"model": "b"}]}]},
         "/rewrites/0/targets"),
        ({"rewrites": [{"targets": [{"model": "a"}], "colour": "red"}]}, "/rewrites/0/colour"),
        ({"objectives": {"batch jobs": -1}}, "/objectives/batch jobs"),
        ({"rewrites": [{"models": ["*"], "targets": [{"model": "a"}]}]}, "/rewrites/0"),
        ({"rewrites": [{"models": ["a"], "targets": [{"model": "x y, z"}]}]}, "/rewrites/0"),
    ],
)  # fmt: skip
def test_what_no_router_takes_is_refused_and_nothing_changes(
    changes: dict[str, Any], pointer: str
) -> None:
    pool = make_pool()

    with pytest.raises(GatewayRulesRefusedError) as refused:
        services.change_gateway_rules(pool_id=pool.pk, changes=changes, actor=make_olga())

    assert str(refused.value.facts["pointer"]).startswith(pointer)
    pool.refresh_from_db()
    assert (pool.objectives, pool.rewrites) == ({}, [])


def test_a_retired_pool_stays_as_it_is() -> None:
    pool = make_pool()
    Pool.objects.update(state="retired")

    with pytest.raises(PoolRetiredError):
        services.change_gateway_rules(pool_id=pool.pk, changes={}, actor=make_olga())


def test_the_next_document_has_the_rules_and_other_targets_as_adapters() -> None:
    pool = make_pool(objectives={"batch": -1}, rewrites=[CANARY])

    services.publish_if_changed(pool_id=pool.pk)

    document = document_of(PoolDocument.objects.get(pool=pool))
    base = pool.model.slug
    assert dict(document.objectives) == {"batch": -1}
    assert document.rewrites[0].models == ("chat",)
    assert {(model.name, model.adapter_of) for model in document.models} == {
        (base, None),
        *((name, base) for name in {"granite", "granite-legal"} - {base}),
    }


def test_keys_for_a_name_that_is_rewritten_reach_the_routers() -> None:
    pool = make_pool(rewrites=[CANARY])
    make_inference_key(models=["chat"])
    make_inference_key(models=["something-else"])

    services.publish_if_changed(pool_id=pool.pk)

    document = document_of(PoolDocument.objects.get(pool=pool))
    assert [key.models for key in document.keys] == [("chat",)]


def test_the_highest_priority_of_a_key_reaches_the_routers() -> None:
    pool = make_pool()
    make_inference_key(highest_priority=10)

    services.publish_if_changed(pool_id=pool.pk)

    document = document_of(PoolDocument.objects.get(pool=pool))
    assert [key.highest_priority for key in document.keys] == [10]


def test_a_pool_is_not_made_with_rules_that_no_router_takes() -> None:
    with pytest.raises(GatewayRulesRefusedError):
        make_pool(rewrites=[{"targets": []}])


def test_a_changed_slo_keeps_what_was_left_out_and_says_why(sent_tasks: list[object]) -> None:
    pool = make_pool(slo_ttft_p95_seconds=1.5, admission={"queue_seconds": 5})
    olga = make_olga()

    services.change_slo(
        pool_id=pool.pk, changes={"slo_tpot_p95_seconds": 0.06}, reason="chat", actor=olga
    )

    pool.refresh_from_db()
    entry = AuditEntry.objects.get(action="pool.slo")
    assert (pool.slo_ttft_p95_seconds, pool.slo_tpot_p95_seconds) == (1.5, 0.06)
    assert pool.admission == {"queue_seconds": 5}
    assert (entry.actor, entry.reason) == (olga, "chat")
    assert entry.before["slo_tpot_p95_seconds"] is None
    assert entry.after["slo_tpot_p95_seconds"] == "0.06"


def test_a_target_is_taken_away_and_rules_of_waiting_are_replaced() -> None:
    pool = make_pool(slo_ttft_p95_seconds=1.5, admission={"queue_seconds": 5})

    services.change_slo(
        pool_id=pool.pk,
        changes={"slo_ttft_p95_seconds": None, "admission": {"queue_requests": 0}},
        actor=make_olga(),
    )

    pool.refresh_from_db()
    assert pool.slo_ttft_p95_seconds is None
    assert pool.admission == {"queue_requests": 0}


def test_another_slo_nudges_the_loop(
    sent_tasks: list[object], django_capture_on_commit_callbacks: Any
) -> None:
    pool = make_pool()
    sent_tasks.clear()

    with django_capture_on_commit_callbacks(execute=True):
        services.change_slo(
            pool_id=pool.pk, changes={"slo_ttft_p95_seconds": 1.0}, actor=make_olga()
        )

    assert sent_tasks == [("controlplane.serving.tasks.reconcile_pool", (str(pool.pk),))]


@pytest.mark.parametrize(
    "changes",
    [
        {"admission": {"queue_requests": -1}},
        {"admission": {"colour": "red"}},
        {"slo_ttft_p95_seconds": float("nan")},
    ],
)
def test_an_slo_that_no_router_takes_is_refused_and_nothing_changes(
    changes: dict[str, Any],
) -> None:
    pool = make_pool(slo_ttft_p95_seconds=1.5)

    with pytest.raises(SloRefusedError):
        services.change_slo(pool_id=pool.pk, changes=changes, actor=make_olga())

    pool.refresh_from_db()
    assert (pool.slo_ttft_p95_seconds, pool.admission) == (1.5, {})
    assert not AuditEntry.objects.filter(action="pool.slo").exists()


def test_a_target_out_of_bounds_is_named() -> None:
    pool = make_pool()

    with pytest.raises(ValidationError) as refused:
        services.change_slo(
            pool_id=pool.pk, changes={"slo_tpot_p95_seconds": float("inf")}, actor=make_olga()
        )

    assert set(refused.value.message_dict) == {"slo_tpot_p95_seconds"}


def test_the_slo_of_a_retired_pool_and_of_someone_elses_fleet_stays() -> None:
    pool = make_pool()

    with pytest.raises(NotPermittedError):
        services.change_slo(pool_id=pool.pk, changes={}, actor=make_ben())
    Pool.objects.update(state=Pool.State.RETIRED)
    with pytest.raises(PoolRetiredError):
        services.change_slo(pool_id=pool.pk, changes={}, actor=make_olga())


def test_settings_of_containers_are_replaced_as_a_whole_and_audited() -> None:
    pool = make_pool(containers={"namespace": "llm", "drain_seconds": 20})
    wanted = {"namespace": "llm", "images": {"amd": "registry.example/vllm:1"}}

    changed = services.change_containers(pool_id=pool.pk, containers=wanted, actor=make_olga())

    assert changed.containers == wanted
    entry = AuditEntry.objects.get(action="pool.containers")
    assert (entry.before["containers"]["drain_seconds"], entry.after) == (
        20,
        {"containers": wanted},
    )


@pytest.mark.parametrize("containers", [{"colour": 1}, {"namespace": "Not one"}, {"shm_mib": -1}])
def test_settings_that_no_cluster_takes_are_refused_and_nothing_changes(
    containers: dict[str, Any],
) -> None:
    pool = make_pool()

    with pytest.raises(ContainersRefusedError, match=r"containers"):
        services.change_containers(pool_id=pool.pk, containers=containers, actor=make_olga())

    pool.refresh_from_db()
    assert pool.containers == {}
