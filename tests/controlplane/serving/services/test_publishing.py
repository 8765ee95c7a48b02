"""Which rows make a pool's document."""

from decimal import Decimal
from typing import Any

import pytest

from controlplane.serving.services.publishing import (
    document_of,
    pool_facts,
    publish_if_changed,
)
from tests.controlplane.serving.factories import make_accelerator_model, make_pool
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_inference_key, make_project, make_tenant
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db


def test_ready_and_draining_endpoints_are_in_it_and_others_are_not() -> None:
    pool = make_pool()
    for state in ("starting", "warming", "ready", "draining"):
        make_endpoint(pool=pool, state=state, url=f"http://127.0.0.1:{9000 + len(state)}")

    facts = pool_facts(pool)

    assert sorted(endpoint.draining for endpoint in facts.endpoints) == [False, True]
    assert list(facts.speed_classes) == ["amd-mi325x/granite-4.1-8b"]


def test_an_endpoint_whose_speed_is_not_known_is_left_out() -> None:
    pool = make_pool()
    make_endpoint(pool=pool)
    make_accelerator_model(bf16_tflops=None)

    assert pool_facts(pool).endpoints == []


def test_live_keys_and_where_their_tenants_may_be_are_in_it() -> None:
    project = make_project(tenant=make_tenant(slug="ana", jurisdictions=["KR"]))
    key, _secret = make_inference_key(project=project, models=["granite-4.1-8b"])
    make_inference_key(models=["another-model"])

    facts = pool_facts(make_pool())

    assert [(row.id, row.models) for row in facts.keys] == [(str(key.pk), ["granite-4.1-8b"])]
    assert facts.tenants == {"ana": ["KR"]}


def test_targets_and_rules_of_waiting_are_in_it() -> None:
    pool = make_pool(
        slo_ttft_p95_seconds=1.5, slo_tpot_p95_seconds=0.06, admission={"queue_seconds": 5}
    )

    facts = pool_facts(pool)

    assert (facts.slo_ttft_seconds, facts.slo_tpot_seconds) == (1.5, 0.06)
    assert facts.admission == {"queue_seconds": 5}


def test_prices_come_from_the_function_that_settings_name(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool()
    endpoint = make_endpoint(pool=pool)
    monkeypatch.setattr(
        "controlplane.serving.selectors.test_prices",
        lambda ids: dict.fromkeys(ids, Decimal("2.5")),
        raising=False,
    )

    settings.ENDPOINT_PRICES = "controlplane.serving.selectors.test_prices"
    priced = pool_facts(pool).endpoints[0]
    settings.ENDPOINT_PRICES = ""
    unpriced = pool_facts(pool).endpoints[0]

    assert (priced.id, priced.price_per_hour) == (endpoint.workload.name, Decimal("2.5"))
    assert unpriced.price_per_hour is None


def test_a_stored_document_reads_back_with_its_hash() -> None:
    pool = make_pool()
    make_endpoint(pool=pool)

    row = publish_if_changed(pool_id=pool.pk, reason="first")

    assert row is not None
    document = document_of(row)
    assert (document.pool, document.version, document.author) == (pool.slug, 1, "consort")
    assert document.endpoints[0].kv_contract.transport == "host-staged"


@pytest.mark.django_db(transaction=True)
def test_of_six_at_once_one_publishes() -> None:
    pool = make_pool()

    outcomes = at_the_same_time(6, publish_if_changed, pool_id=pool.pk)

    assert outcomes == ["NoneType"] * 5 + ["PoolDocument"]
