"""The ledger by node, class, month and day; who may see it."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.finance import selectors, services
from controlplane.finance.models import LedgerHour
from tests.controlplane.finance.rows import HOUR, assign, make_asset_cost, make_pool
from tests.controlplane.telemetry.rows import make_node
from tests.factories import make_ana, make_olga, make_user

pytestmark = pytest.mark.django_db
START, END = HOUR - timedelta(hours=50), HOUR + timedelta(hours=1)


@pytest.fixture(autouse=True)
def ledger(db: None) -> None:
    pool = make_pool()
    for name in ("gpu-b", "gpu-a"):
        node = make_node(hostname=name)
        make_asset_cost(node)
        assign(pool, list(node.accelerators.all()), "both")
    services.recompute_ledger(start=START, end=END, now=END, source="simulated")


def test_sums_by_node_and_by_class_equal_the_ledger() -> None:
    hours = LedgerHour.objects.all()

    nodes = selectors.ledger_by_node(hours, start=START, end=END)
    classes = selectors.classes_between(hours, start=START, end=END)

    total = sum(row.total for row in hours)
    assert [row.hostname for row in nodes] == ["gpu-a", "gpu-b"]
    assert sum(row.total for row in nodes) == total
    assert sum(row.amount for row in classes) == total
    assert [(row.cost_class, row.role) for row in classes] == [("assigned", "both"), ("idle", "")]


def test_month_to_date_has_its_source() -> None:
    month = selectors.month_to_date(LedgerHour.objects.all(), now=END)

    assert month.total == sum(row.total for row in LedgerHour.objects.all())
    assert (month.until, month.currency, month.sources) == (HOUR, "USD", ["simulated"])


def test_a_month_without_hours_is_no_data_and_not_zero() -> None:
    month = selectors.month_to_date(LedgerHour.objects.all(), now=datetime(2027, 3, 5, tzinfo=UTC))

    assert (month.total, month.until) == (None, None)


def test_the_series_grows_to_the_total() -> None:
    series = selectors.cumulative_cost(LedgerHour.objects.all(), start=START, end=END)

    assert [day.day for day, _ in series] == [28, 29, 30]
    assert series == sorted(series)
    assert series[-1][1] == sum(row.total for row in LedgerHour.objects.all())


def test_costs_of_the_provider_are_for_finance_only() -> None:
    for user, expected in ((make_user(None, "finance"), 102), (make_olga(), 0), (make_ana(), 0)):
        assert selectors.ledger_for_viewer(user).count() == expected
    assert selectors.asset_costs_for_viewer(make_user(None, "finance")).count() == 2
    assert selectors.asset_costs_for_viewer(make_ana()).count() == 0
    assert selectors.site_costs_for_viewer(make_ana()).count() == 0
