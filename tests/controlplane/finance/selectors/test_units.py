"""Cost per million tokens by role, with method and utilisation beside it."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from controlplane.finance import selectors, services
from controlplane.finance.models import LedgerHour
from controlplane.telemetry.models import UtilisationHour
from tests.controlplane.finance.rows import (
    HOUR,
    NOW,
    assign,
    make_asset_cost,
    make_engine_hour,
    make_pool,
)
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def disaggregated(db: None) -> None:
    """One accelerator for prefill, one for decode, one for both; computed prompts on prefill."""
    node = make_node(accelerators=3)
    make_asset_cost(node)
    pool = make_pool()
    for accelerator, role in zip(
        node.accelerators.order_by("slot"), ("prefill", "decode", "both"), strict=True
    ):
        assign(pool, [accelerator], role)
        UtilisationHour.objects.create(
            accelerator=accelerator, hour=HOUR, pool="granite", role=role, utilisation=0.4,
            samples=360, expected_samples=720, source="simulated",
        )  # fmt: skip
    make_engine_hour(node, role="prefill", prompt_computed_tokens=2_000_000, generation_tokens=300)
    make_engine_hour(node, role="decode", prompt_computed_tokens=0, generation_tokens=500_000)
    make_engine_hour(
        node, role="both", prompt_computed_tokens=1_000_000, generation_tokens=100_000,
        prefill_seconds=10.0, decode_seconds=30.0,
    )  # fmt: skip
    services.recompute_ledger(start=HOUR, end=NOW, now=NOW)


def test_roles_are_phases_in_a_disaggregated_pool(disaggregated: None) -> None:
    costs = selectors.unit_costs(LedgerHour.objects.all(), start=HOUR, end=NOW)

    third = LedgerHour.objects.get().total / 3
    by_phase = {(row.role, row.phase): row for row in costs}
    assert set(by_phase) == {
        ("prefill", "prompt"),
        ("decode", "output"),
        ("both", "prompt"),
        ("both", "output"),
    }
    prefill, decode = by_phase["prefill", "prompt"], by_phase["decode", "output"]
    assert prefill.cost_per_million_tokens == pytest.approx(third / 2, abs=Decimal("1e-9"))
    assert decode.cost_per_million_tokens == pytest.approx(third * 2, abs=Decimal("1e-9"))
    assert (prefill.method, decode.method) == ("role_ledger_exact", "role_ledger_exact")
    assert by_phase["both", "output"].method == "phase_time_measured"
    assert by_phase["both", "output"].cost == pytest.approx(third * 3 / 4, abs=Decimal("1e-9"))
    assert (decode.utilisation, decode.coverage) == (pytest.approx(0.4), 0.5)


def test_a_role_without_tokens_has_a_cost_and_no_price() -> None:
    node = make_node(accelerators=1)
    make_asset_cost(node)
    assign(make_pool(), [node.accelerators.get()], "prefill")
    services.recompute_ledger(start=HOUR, end=NOW, now=NOW)

    (row,) = selectors.unit_costs(LedgerHour.objects.all(), start=HOUR, end=NOW)

    assert row.cost > 0
    assert (row.tokens, row.cost_per_million_tokens, row.utilisation) == (None, None, None)


def test_queries_do_not_grow_with_the_hours(
    disaggregated: None, django_assert_num_queries: Any
) -> None:
    services.recompute_ledger(
        start=HOUR - timedelta(hours=20), end=NOW, now=NOW + timedelta(hours=1)
    )

    for hours in (1, 20):
        with django_assert_num_queries(4):
            selectors.unit_costs(
                LedgerHour.objects.all(), start=NOW - timedelta(hours=hours), end=NOW
            )
