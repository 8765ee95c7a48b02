"""Routers and engines count the same tokens; what differs stands on its own line."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.metering import services
from controlplane.metering.models import Reconciliation
from controlplane.serving.models import ProbeRecord
from tests.controlplane.finance.rows import make_endpoint, make_engine_hour, make_pool
from tests.controlplane.metering.rows import (
    HOUR,
    first_prompt,
    make_event,
    make_segment,
    make_usage_hour,
)
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


def reconcile() -> Reconciliation:
    return services.reconcile_hour(pool="granite", hour=HOUR)


def engine(role: str, **overrides: Any) -> None:
    defaults = {"hour": HOUR, "prompt_tokens": 1000, "generation_tokens": 50}
    make_engine_hour(make_node(), role=role, **defaults | overrides)


def test_a_clean_hour_leaves_nothing_over() -> None:
    node, pool = make_node(accelerators=2), make_pool()
    answering, prefill = node.accelerators.order_by("slot")
    for accelerator, role in ((answering, "decode"), (prefill, "prefill")):
        ProbeRecord.objects.create(
            endpoint=make_endpoint(pool, accelerator, role=role),
            purpose="warm-up",
            prompt_tokens=8,
            completion_tokens=2,
            at=HOUR + timedelta(minutes=1),
        )
    make_usage_hour(waste_output=3)
    engine("decode", prompt_tokens=500 + 8, generation_tokens=25 + 2)
    engine("both", prompt_tokens=500, generation_tokens=25 + 3)
    engine("prefill", prompt_tokens=508, generation_tokens=9)

    row = reconcile()

    assert (row.gateway_tokens, row.engine_tokens, row.probe_tokens) == (1053, 1063, 10)
    assert row.unattributed_tokens == 0
    assert row.source == "simulated"


def test_first_prompts_of_routers_are_probes_and_no_clients() -> None:
    services.ingest_segment(
        make_segment([make_event(1), first_prompt(2), first_prompt(3, node="gpu-2")])
    )
    services.recompute_stale_hours()
    make_pool()
    engine("decode", prompt_tokens=1000 + 302 + 302, generation_tokens=50 + 1 + 1)

    row = reconcile()

    assert (row.gateway_tokens, row.probe_tokens) == (1050, 606)
    assert row.unattributed_tokens == 0


def test_what_tenants_call_alike_is_theirs() -> None:
    make_usage_hour(tenant="consort")
    make_usage_hour(key="warm-up")
    engine("both", prompt_tokens=2000, generation_tokens=100)

    row = reconcile()

    assert (row.gateway_tokens, row.probe_tokens) == (2100, 0)


@pytest.mark.parametrize(("generated", "left"), [(150, 100), (10, -40)])
def test_what_differs_is_shown_with_its_sign(generated: int, left: int) -> None:
    make_usage_hour()
    engine("both", generation_tokens=generated)

    assert reconcile().unattributed_tokens == left


def test_an_hour_without_engine_counters_is_not_reconciled() -> None:
    make_usage_hour()

    row = reconcile()

    assert (row.engine_tokens, row.unattributed_tokens) == (None, None)

    engine("both")
    engine("both", generation_tokens=None)

    assert reconcile().engine_tokens is None


def test_recent_hours_of_every_pool_are_reconciled_and_the_second_run_adds_none() -> None:
    make_usage_hour(pool="a")
    make_usage_hour(pool="b", hour=HOUR - timedelta(hours=1))
    make_usage_hour(pool="c", hour=HOUR - timedelta(hours=5))

    counts = [services.reconcile_recent(now=HOUR + timedelta(minutes=5)) for _ in range(2)]

    assert counts == [2, 2]
    assert sorted(Reconciliation.objects.values_list("pool", flat=True)) == ["a", "b"]
