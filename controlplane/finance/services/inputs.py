"""What people enter: the cost of a node, and the figures of a site's month."""

from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.finance.depreciation import book_value
from controlplane.finance.errors import (
    AssetCostBackdatedError,
    AssetCostExistsError,
    AssetCostMissingError,
    CurrencyDiffersError,
    LifeOverError,
    ResidualTooHighError,
    ServiceTimeError,
)
from controlplane.finance.models import AssetCost, SiteCostPeriod
from controlplane.finance.selectors.inputs import terms_of
from controlplane.tenancy.models import User
from inventory.models import Node, Site

SERVICE_YEARS = range(1990, 2201)
"""Years in which a node may go into service; the calendar ends at 9999."""
_AUDITED = (
    "version", "valid_from", "currency", "capex", "install", "spares", "residual", "life_months",
    "annual_rate", "in_service_at", "retired_at", "host_watts", "power_factor", "evidence",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetFigures:
    """Price and life of a node with its accelerators."""

    currency: str
    capex: Decimal
    life_months: int
    annual_rate: Decimal
    in_service_at: datetime
    install: Decimal = Decimal(0)
    spares: Decimal = Decimal(0)
    residual: Decimal = Decimal(0)
    retired_at: datetime | None = None
    host_watts: Decimal | None = None
    power_factor: Decimal = Decimal("0.7000")
    evidence: str = "estimate"
    note: str = ""


@transaction.atomic
def record_asset_cost(
    *, node_id: UUID, figures: AssetFigures, actor: User | None, reason: str = ""
) -> AssetCost:
    """Store the first version of a node's cost; `actor` None is the system.

    Raises NotPermittedError, AssetCostExistsError, CurrencyDiffersError, ServiceTimeError.
    """
    node = Node.objects.select_for_update(no_key=True, of=("self",)).get(pk=node_id)
    if actor is not None:
        permissions.require(actor, "finance.add_assetcost", node)
    latest = AssetCost.objects.filter(node=node).order_by("-version").first()
    if latest is not None:
        raise AssetCostExistsError(node=node.hostname, version=latest.version)
    _check_currency(figures.currency)
    if figures.in_service_at.year not in SERVICE_YEARS:
        raise ServiceTimeError(
            in_service_at=figures.in_service_at,
            first=SERVICE_YEARS.start,
            last=SERVICE_YEARS.stop - 1,
        )
    row = AssetCost(
        node=node, version=1, valid_from=figures.in_service_at, author=actor, **asdict(figures)
    )
    row.full_clean()
    row.save()
    audit.record(
        actor=actor, action="assetcost.record", subject=row, reason=reason, after=_shown(row)
    )
    return row


@transaction.atomic
def revise_asset_cost(
    *,
    node_id: UUID,
    actor: User,
    reason: str,
    valid_from: datetime,
    life_months: int | None = None,
    residual: Decimal | None = None,
) -> AssetCost:
    """Change life or residual of a node from a future moment on; past hours of the ledger stay.

    The new version takes over the book value of that moment. Raises NotPermittedError,
    AssetCostMissingError, AssetCostBackdatedError, LifeOverError, ResidualTooHighError.
    """
    node = Node.objects.select_for_update(no_key=True, of=("self",)).get(pk=node_id)
    permissions.require(actor, "finance.change_assetcost", node)
    latest = AssetCost.objects.filter(node=node).order_by("-version").first()
    if latest is None:
        raise AssetCostMissingError(node=node.hostname)
    earliest = max(timezone.now(), latest.valid_from)
    if valid_from <= earliest:
        raise AssetCostBackdatedError(valid_from=valid_from, earliest=earliest)
    row = AssetCost.objects.get(pk=latest.pk)
    row.pk, row.version, row.valid_from, row.author = None, latest.version + 1, valid_from, actor
    row._state.adding = True  # noqa: SLF001 - Django's documented way to copy a row
    row.opening_book_value = book_value(terms_of(latest), valid_from)
    row.life_months = life_months or latest.life_months
    row.residual = latest.residual if residual is None else residual
    _check_revision(row)
    row.full_clean()
    row.save(force_insert=True)
    audit.record(
        actor=actor, action="assetcost.revise", subject=row, reason=reason,
        before=_shown(latest), after=_shown(row),
    )  # fmt: skip
    return row


@transaction.atomic
def record_site_cost(  # noqa: PLR0913 - keywords only, each a column
    *,
    site_id: UUID,
    month: date,
    pue: Decimal,
    tariff_per_kwh: Decimal,
    source: str,
    actor: User | None,
    reason: str = "",
) -> SiteCostPeriod:
    """Store PUE and power price of a site for a month, in the ledger's currency."""
    site = Site.objects.select_for_update(no_key=True).get(pk=site_id)
    if actor is not None:
        permissions.require(actor, "finance.add_sitecostperiod", site)
    row = SiteCostPeriod(
        site=site,
        month=month,
        pue=pue,
        tariff_per_kwh=tariff_per_kwh,
        currency=settings.LEDGER_CURRENCY,
        source=source,
    )
    row.full_clean()
    row.save()
    audit.record(
        actor=actor, action="sitecost.record", subject=row, reason=reason,
        after={"month": month, "pue": pue, "tariff_per_kwh": tariff_per_kwh, "source": source},
    )  # fmt: skip
    return row


def _check_revision(row: AssetCost) -> None:
    """Raise unless something is left to depreciate, over a time that is left."""
    terms = terms_of(row)
    if terms.end <= row.valid_from:
        raise LifeOverError(life_months=row.life_months, end=terms.end, valid_from=row.valid_from)
    if terms.base < 0:
        raise ResidualTooHighError(residual=row.residual, book_value=terms.price)


def _shown(row: AssetCost) -> dict[str, object]:
    """The figures of a version, for the audit log."""
    return {name: getattr(row, name) for name in _AUDITED}


def _check_currency(currency: str) -> None:
    if currency != settings.LEDGER_CURRENCY:
        raise CurrencyDiffersError(currency=currency, ledger_currency=settings.LEDGER_CURRENCY)
