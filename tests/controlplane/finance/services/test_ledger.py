"""The ledger is recomputed from its inputs and always sums up."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Sum

from controlplane.finance import services
from controlplane.finance.models import ClassHour, LedgerHour
from inventory.models import Accelerator, Node
from tests.controlplane.finance.rows import (
    HOUR,
    NOW,
    assign,
    make_asset_cost,
    make_endpoint,
    make_pool,
)
from tests.controlplane.metering.rows import unchanging
from tests.controlplane.telemetry.rows import make_cluster, make_node, make_site

pytestmark = pytest.mark.django_db


def compute(**overrides: Any) -> int:
    return services.recompute_ledger(**{"start": HOUR, "end": NOW, "now": NOW} | overrides)


def classes() -> dict[tuple[str, str], int]:
    rows = ClassHour.objects.values_list("cost_class", "role", "accelerator_seconds")
    return {(cost_class, role): seconds for cost_class, role, seconds in rows}


def test_components_of_an_hour() -> None:
    make_asset_cost(make_node(accelerators=2))

    compute()

    row = LedgerHour.objects.get()
    # 1,000 USD in 720 hours; 2 x 1000 W x 0.7 + 600 W = 2 kW; PUE 1.3, 0.10 USD/kWh.
    assert row.depreciation == pytest.approx(Decimal("1.3888888889"), abs=Decimal("1e-9"))
    assert (row.kilowatts, row.power_source) == (Decimal("2.0"), "estimated")
    assert row.power == Decimal("0.26")
    # Book value of the month: 62,000 to 61,000 at 6 % a year.
    assert row.finance == (Decimal("61500") * Decimal("0.005") / 720).quantize(Decimal("1e-10"))
    assert row.total == row.depreciation + row.finance + Decimal("0.26")
    assert row.source == "modelled"


def test_seconds_go_to_roles_and_what_is_left_is_idle() -> None:
    node = make_node(accelerators=3)
    first, second, _third = node.accelerators.order_by("slot")
    make_asset_cost(node)
    pool = make_pool()
    half = HOUR + timedelta(minutes=30)
    assign(pool, [first], "prefill", valid_to=half)
    assign(pool, [first], "decode", valid_from=half)
    assign(pool, [second], "both")

    compute()

    assert classes() == {
        ("assigned", "prefill"): 1800,
        ("assigned", "decode"): 1800,
        ("assigned", "both"): 3600,
        ("idle", ""): 3600,
    }
    assert ClassHour.objects.aggregate(sum=Sum("amount"))["sum"] == LedgerHour.objects.get().total


def test_time_from_the_switch_until_ready_is_transition() -> None:
    node = make_node(accelerators=1)
    accelerator = node.accelerators.get()
    make_asset_cost(node)
    pool = make_pool()
    assign(pool, [accelerator], "decode", valid_from=HOUR)
    make_endpoint(pool, accelerator, role="decode", ready_at=HOUR + timedelta(minutes=2))

    compute()

    assert classes() == {("transition", ""): 120, ("assigned", "decode"): 3480}


def test_a_failed_node_keeps_costing_and_is_unavailable() -> None:
    node = make_node(
        accelerators=1,
        health="failed",
        health_since=HOUR + timedelta(minutes=45),
        observed_at=HOUR,
    )
    make_asset_cost(node)
    assign(make_pool(), [node.accelerators.get()], "both")

    compute()

    assert classes() == {("assigned", "both"): 2700, ("unavailable", ""): 900}


def test_a_second_run_writes_the_same_rows_and_old_classes_go() -> None:
    node = make_node(accelerators=2)
    make_asset_cost(node)
    assignment = assign(make_pool(), list(node.accelerators.all()), "both")
    compute()
    before = unchanging(LedgerHour), unchanging(ClassHour)

    compute()
    assert (unchanging(LedgerHour), unchanging(ClassHour)) == before

    assignment.valid_to = HOUR
    assignment.save()
    compute()
    assert classes() == {("idle", ""): 7200}


def test_the_running_hour_covers_what_has_passed() -> None:
    make_asset_cost(make_node())

    compute(now=HOUR + timedelta(minutes=15))
    part = LedgerHour.objects.get()
    compute()
    whole = LedgerHour.objects.get()

    assert (part.seconds, whole.seconds) == (900, 3600)
    assert part.power is not None
    assert part.power * 4 == whole.power
    assert part.pk == whole.pk


def test_hours_before_service_and_after_retirement_are_not_on_the_books() -> None:
    early, late = make_node(), make_node()
    make_asset_cost(early, retired_at=HOUR + timedelta(minutes=30))
    make_asset_cost(late, in_service_at=NOW)

    compute(end=NOW + timedelta(hours=1), now=NOW + timedelta(hours=1))

    rows = LedgerHour.objects.order_by("hour")
    assert [(row.node, row.hour, row.seconds) for row in rows] == [
        (early, HOUR, 1800),
        (late, NOW, 3600),
    ]
    assert rows[0].write_off > 60_000


def test_a_retired_node_leaves_the_books_with_what_it_was_still_worth() -> None:
    node, retired_at = make_node(accelerators=2), HOUR + timedelta(minutes=30)
    make_asset_cost(node)
    node.accelerators.update(state="retired", retired_at=retired_at)
    Node.objects.filter(pk=node.pk).update(state="retired", retired_at=retired_at)

    compute(end=NOW + timedelta(hours=1), now=NOW + timedelta(hours=1))

    row = LedgerHour.objects.get()
    assert (row.hour, row.seconds) == (HOUR, 1800)
    assert row.write_off > 60_000
    assert ClassHour.objects.aggregate(sum=Sum("amount"))["sum"] == row.total
    assert classes() == {("idle", ""): 3600}


def test_a_card_that_replaced_another_does_not_make_the_slot_count_twice() -> None:
    node, moment = make_node(accelerators=2), HOUR + timedelta(minutes=20)
    make_asset_cost(node)
    old = node.accelerators.get(slot=0)
    assign(make_pool(), [old], "decode", valid_to=moment)
    Accelerator.objects.filter(pk=old.pk).update(state="retired", retired_at=moment)
    Accelerator.objects.create(node=node, model=old.model, vendor=old.vendor, slot=0)

    compute()

    assert classes() == {("assigned", "decode"): 1200, ("idle", ""): 2400 + 3600}
    assert LedgerHour.objects.get().kilowatts == Decimal("2.0")


def test_figures_of_the_month_come_before_those_of_the_site() -> None:
    node = make_node()
    make_asset_cost(node)
    services.record_site_cost(
        site_id=node.cluster.site_id,
        month=date(2026, 11, 1),
        pue=Decimal(2),
        tariff_per_kwh=Decimal("0.5"),
        source="invoice",
        actor=None,
    )

    compute()

    assert LedgerHour.objects.get().power == Decimal(2)


@pytest.mark.parametrize("site", [{"pue": None}, {"tariff_per_kwh": None}, {"currency": "KRW"}])
def test_unknown_power_is_left_out_and_says_so(site: dict[str, Any]) -> None:
    make_asset_cost(make_node(cluster=make_cluster(site=make_site(**site))))

    compute()

    row = LedgerHour.objects.get()
    assert (row.power, row.power_source) == (None, "unknown")
    assert row.total == row.depreciation + row.finance


def test_many_hours_and_nodes_need_the_same_queries(django_assert_num_queries: Any) -> None:
    for _ in range(3):
        make_asset_cost(make_node())
    compute()

    for hours in (2, 24):
        with django_assert_num_queries(12):
            count = compute(end=HOUR + timedelta(hours=hours), now=HOUR + timedelta(days=2))
        assert count == 3 * hours
