"""Inputs of the ledger: versions by time, figures by month, spans from the role ledger."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from controlplane.finance.classes import CostKey
from controlplane.finance.models import AssetCost
from controlplane.finance.selectors.inputs import ledger_inputs, terms_of
from controlplane.finance.services import record_site_cost
from tests.controlplane.finance.rows import (
    HOUR,
    NOW,
    assign,
    make_asset_cost,
    make_endpoint,
    make_pool,
)
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


def test_the_version_of_the_moment_counts() -> None:
    node = make_node()
    first = make_asset_cost(node)
    later = HOUR - timedelta(days=3)
    second = AssetCost.objects.create(
        node=node, version=2, valid_from=later, currency="USD", capex=first.capex,
        opening_book_value=Decimal(50_000), life_months=84, annual_rate=first.annual_rate,
        in_service_at=first.in_service_at,
    )  # fmt: skip

    inputs = ledger_inputs(start=HOUR, end=NOW, now=NOW)

    assert inputs.version_at(node.pk, HOUR) == second
    assert inputs.version_at(node.pk, later - timedelta(seconds=1)) == first
    assert inputs.version_at(node.pk, datetime(2025, 1, 1, tzinfo=UTC)) is None
    assert (terms_of(first).price, terms_of(first).starts_at) == (Decimal(72_000), None)
    assert (terms_of(second).price, terms_of(second).starts_at) == (Decimal(50_000), later)


def test_a_month_without_figures_has_those_of_the_site() -> None:
    node = make_node()
    make_asset_cost(node)
    record_site_cost(
        site_id=node.cluster.site_id,
        month=date(2026, 11, 1),
        pue=Decimal("1.5"),
        tariff_per_kwh=Decimal("0.2"),
        source="invoice",
        actor=None,
    )

    inputs = ledger_inputs(start=HOUR, end=NOW, now=NOW)

    (loaded,) = inputs.nodes
    assert inputs.site_at(loaded, HOUR).pue == Decimal("1.5")
    assert inputs.site_at(loaded, HOUR - timedelta(days=31)).pue == Decimal("1.3")


def test_an_engine_that_never_became_ready_is_transition_until_now() -> None:
    node = make_node(accelerators=1)
    accelerator = node.accelerators.get()
    make_asset_cost(node)
    pool = make_pool()
    assign(pool, [accelerator], "decode", valid_from=HOUR)
    make_endpoint(pool, accelerator, role="decode", state="starting", ready_at=None)

    spans = ledger_inputs(start=HOUR, end=NOW, now=NOW).spans[accelerator.pk]

    assert {(span.key, span.end) for span in spans} == {
        (CostKey("assigned", "granite", "decode"), None),
        (CostKey("transition", "granite"), NOW),
    }


def test_an_assignment_of_the_simulated_past_has_no_transition() -> None:
    node = make_node(accelerators=1)
    accelerator = node.accelerators.get()
    make_asset_cost(node)
    assign(
        make_pool(), [accelerator], "both",
        valid_to=HOUR + timedelta(minutes=5), simulated=True,
    )  # fmt: skip

    spans = ledger_inputs(start=HOUR, end=NOW, now=NOW).spans[accelerator.pk]

    assert [span.key.cost_class for span in spans] == ["assigned"]
