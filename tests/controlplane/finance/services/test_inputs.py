"""Costs are recorded in versions that only change the future."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.finance import services
from controlplane.finance.errors import (
    AssetCostBackdatedError,
    AssetCostExistsError,
    AssetCostMissingError,
    CurrencyDiffersError,
    LifeOverError,
    ResidualTooHighError,
    ServiceTimeError,
)
from controlplane.finance.models import AssetCost
from tests.controlplane.finance.rows import make_asset_cost, make_figures
from tests.controlplane.telemetry.rows import make_node, make_site
from tests.factories import make_olga, make_user

pytestmark = pytest.mark.django_db


def test_the_first_version_holds_from_service_on_and_is_audited() -> None:
    finance = make_user(None, "finance")

    row = services.record_asset_cost(
        node_id=make_node().pk, figures=make_figures(), actor=finance, reason="invoice 17"
    )

    assert (row.version, row.valid_from) == (1, row.in_service_at)
    assert AuditEntry.objects.get(action="assetcost.record").reason == "invoice 17"


def test_a_second_first_version_is_refused() -> None:
    node = make_node()
    make_asset_cost(node)

    with pytest.raises(AssetCostExistsError, match="has version 1"):
        make_asset_cost(node)


def test_the_fleets_operator_may_not_record_costs() -> None:
    with pytest.raises(NotPermittedError):
        services.record_asset_cost(
            node_id=make_node().pk, figures=make_figures(), actor=make_olga()
        )


def test_another_currency_than_the_ledgers_is_refused() -> None:
    with pytest.raises(CurrencyDiffersError, match="amounts are in KRW"):
        make_asset_cost(make_node(), currency="KRW")


@pytest.mark.parametrize(
    "wrong",
    [
        {"residual": Decimal(72_001)},
        {"life_months": 0},
        {"capex": Decimal(-1)},
        {"retired_at": datetime(2025, 1, 1, tzinfo=UTC)},
    ],
)
def test_impossible_figures_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        make_asset_cost(make_node(), **wrong)

    assert not AssetCost.objects.exists()


def test_a_revision_takes_over_the_book_value_in_the_future() -> None:
    node, finance = make_node(), make_user(None, "finance")
    first = make_asset_cost(node)
    start = (timezone.now() + timedelta(days=40)).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )

    second = services.revise_asset_cost(
        node_id=node.pk, actor=finance, reason="runs longer", valid_from=start, life_months=84
    )

    assert (second.version, second.life_months, second.capex) == (2, 84, first.capex)
    assert second.opening_book_value is not None
    assert 0 < second.opening_book_value < first.capex
    assert AssetCost.objects.get(version=1).life_months == 72


def test_a_revision_of_the_past_is_refused() -> None:
    node, finance = make_node(), make_user(None, "finance")

    with pytest.raises(AssetCostMissingError):
        services.revise_asset_cost(
            node_id=node.pk, actor=finance, reason="x", valid_from=timezone.now()
        )
    make_asset_cost(node)
    with pytest.raises(AssetCostBackdatedError):
        services.revise_asset_cost(
            node_id=node.pk,
            actor=finance,
            reason="x",
            valid_from=timezone.now() - timedelta(days=1),
        )


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"life_months": 12}, LifeOverError, "A life of 12 months ends at 2027-01-01"),
        ({"residual": Decimal(70_000)}, ResidualTooHighError, "above the book value"),
    ],
)
def test_a_revision_that_would_earn_money_or_ends_before_it_starts_is_refused(
    change: dict[str, object], error: type[Exception], sentence: str
) -> None:
    node, finance = make_node(), make_user(None, "finance")
    make_asset_cost(node)

    with pytest.raises(error, match=sentence):
        services.revise_asset_cost(
            node_id=node.pk, actor=finance, reason="x",
            valid_from=datetime(2028, 1, 1, tzinfo=UTC), **change,
        )  # fmt: skip

    assert AssetCost.objects.count() == 1


@pytest.mark.parametrize("year", [1, 1989, 2201, 9999])
def test_a_node_goes_into_service_in_this_age(year: int) -> None:
    with pytest.raises(ServiceTimeError, match="cannot have gone into service"):
        make_asset_cost(make_node(), in_service_at=datetime(year, 6, 1, tzinfo=UTC))


def test_the_audit_log_has_the_figures_before_and_after() -> None:
    node, finance = make_node(), make_user(None, "finance")
    make_asset_cost(node)

    services.revise_asset_cost(
        node_id=node.pk, actor=finance, reason="runs longer", life_months=84,
        valid_from=datetime(2028, 1, 1, tzinfo=UTC),
    )  # fmt: skip

    first = AuditEntry.objects.get(action="assetcost.record")
    revised = AuditEntry.objects.get(action="assetcost.revise")
    assert (first.after["capex"], first.after["life_months"]) == ("72000", 72)
    assert (revised.before["life_months"], revised.after["life_months"]) == (72, 84)
    assert "capex" not in revised.after


def test_site_figures_are_by_month() -> None:
    site = make_site()

    row = services.record_site_cost(
        site_id=site.pk,
        month=date(2026, 11, 1),
        pue=Decimal("1.4"),
        tariff_per_kwh=Decimal("0.12"),
        source="invoice of the utility",
        actor=None,
    )

    assert row.currency == "USD"
    with pytest.raises(ValidationError):
        services.record_site_cost(
            site_id=site.pk,
            month=date(2026, 11, 2),
            pue=Decimal("0.4"),
            tariff_per_kwh=Decimal("0.12"),
            source="",
            actor=None,
        )
