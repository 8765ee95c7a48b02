"""Costs of owned hardware as inputs, and the ledger that is computed from them.

Amounts have ten decimals, unit prices twelve; a currency stands beside each amount.
"""

from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from controlplane.telemetry.models import Evidence


def amount_field(**options: Any) -> "models.DecimalField[Any, Any]":
    """A money column: numeric(28, 10)."""
    return models.DecimalField(max_digits=28, decimal_places=10, **options)


class AssetCost(TimestampedModel):
    """What one node with its accelerators costs, from one moment on. Versions are never edited."""

    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="asset_costs")
    version = models.PositiveIntegerField()
    valid_from = models.DateTimeField()
    currency = models.CharField(max_length=3)
    capex = amount_field(validators=[MinValueValidator(0)])
    install = amount_field(default=0)
    spares = amount_field(default=0)
    residual = amount_field(default=0)
    opening_book_value = amount_field(null=True, blank=True)
    """Book value that a later version takes over; None for the first one."""
    life_months = models.PositiveIntegerField()
    annual_rate = models.DecimalField(max_digits=8, decimal_places=6)
    """Cost of capital per year as a share, for example 0.06."""
    in_service_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)
    host_watts = models.DecimalField(max_digits=12, decimal_places=3, null=True, blank=True)
    """Power of the machine without its accelerators."""
    power_factor = models.DecimalField(max_digits=5, decimal_places=4, default="0.7000")
    """Share of the TDP that is assumed where nobody measures power."""
    evidence = models.CharField(max_length=16, default="estimate")
    """`contract`, `estimate` or `list_price`; prices nobody publishes are an estimate."""
    note = models.CharField(max_length=300, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["node", "-version", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "version"],
                name="finance_assetcost_version_unique",
                violation_error_message=_("This version of the node's cost exists already."),
            ),
            models.UniqueConstraint(
                fields=["node", "valid_from"],
                name="finance_assetcost_valid_from_unique",
                violation_error_message=_("A version of the node's cost starts at this time."),
            ),
            models.CheckConstraint(
                condition=Q(life_months__gte=1, life_months__lte=240),
                name="finance_assetcost_life_is_possible",
                violation_error_message=_("The life is 1 to 240 months."),
            ),
            models.CheckConstraint(
                condition=Q(capex__gte=0, install__gte=0, spares__gte=0, residual__gte=0),
                name="finance_assetcost_amounts_not_negative",
                violation_error_message=_("Amounts of an asset are not negative."),
            ),
            models.CheckConstraint(
                condition=Q(residual__lte=F("capex") + F("install") + F("spares")),
                name="finance_assetcost_residual_within_price",
                violation_error_message=_("The residual value is not above the price."),
            ),
            models.CheckConstraint(
                condition=Q(retired_at__isnull=True) | Q(retired_at__gt=F("in_service_at")),
                name="finance_assetcost_retired_after_service",
                violation_error_message=_("A node retires after it went into service."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node_id} v{self.version}"


class SiteCostPeriod(TimestampedModel):
    """PUE and power price of a site in one UTC month; else the site's own figures hold."""

    site = models.ForeignKey(
        "inventory.Site", on_delete=models.PROTECT, related_name="cost_periods"
    )
    month = models.DateField()
    """First day of the month."""
    pue = models.DecimalField(max_digits=6, decimal_places=4)
    tariff_per_kwh = models.DecimalField(max_digits=28, decimal_places=12)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=300)

    class Meta:
        ordering = ["site", "-month", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "month"],
                name="finance_sitecostperiod_month_unique",
                violation_error_message=_("This month of the site has its figures already."),
            ),
            models.CheckConstraint(
                condition=Q(pue__gte=1, pue__lte=5),
                name="finance_sitecostperiod_pue_is_possible",
                violation_error_message=_("A PUE is 1 to 5."),
            ),
            models.CheckConstraint(
                condition=Q(month__day=1),
                name="finance_sitecostperiod_month_starts_on_first",
                violation_error_message=_("A month is named by its first day."),
            ),
            models.CheckConstraint(
                condition=Q(tariff_per_kwh__gte=0),
                name="finance_sitecostperiod_tariff_not_negative",
                violation_error_message=_("A power price is not negative."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.month:%Y-%m}"


class LedgerHour(TimestampedModel):
    """What one node costs in one hour on the books, also when idle, broken or never used."""

    class PowerSource(models.TextChoices):
        MEASURED = "measured", _("measured")
        ESTIMATED = "estimated", _("estimated")
        UNKNOWN = "unknown", _("unknown")

    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="+")
    hour = models.DateTimeField()
    seconds = models.PositiveIntegerField()
    """Seconds of the hour that the row covers: fewer than 3600 while it runs or at an edge."""
    currency = models.CharField(max_length=3)
    depreciation = amount_field()
    finance = amount_field()
    power = amount_field(null=True, blank=True)
    """None where power, PUE or power price is unknown; the total then lacks it and says so."""
    write_off = amount_field(default=0)
    total = amount_field()
    kilowatts = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    power_source = models.CharField(max_length=16, choices=PowerSource)
    pue = models.DecimalField(max_digits=6, decimal_places=4, null=True, blank=True)
    tariff_per_kwh = models.DecimalField(max_digits=28, decimal_places=12, null=True, blank=True)
    asset_cost = models.ForeignKey(AssetCost, on_delete=models.PROTECT, related_name="+")
    source = models.CharField(max_length=16, choices=Evidence)
    state_unknown = models.BooleanField(default=False)
    """Health was unknown in the hour; its seconds count as its assignment."""

    KEY = ["node", "hour"]
    COMPONENTS = ["depreciation", "finance", "power", "write_off"]

    class Meta:
        ordering = ["-hour", "node", "pk"]
        indexes = [models.Index(fields=["hour"], name="finance_ledgerhour_hour")]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "hour"],
                name="finance_ledgerhour_hour_unique",
                violation_error_message=_("This hour of the node is in the ledger already."),
            ),
            models.CheckConstraint(
                condition=Q(
                    total=F("depreciation")
                    + F("finance")
                    + Coalesce(F("power"), Decimal(0))
                    + F("write_off")
                ),
                name="finance_ledgerhour_total_is_the_sum",
                violation_error_message=_("The total is the sum of the components."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.hour:%Y-%m-%dT%H}"


class ClassHour(TimestampedModel):
    """Where the accelerator-seconds and the money of one ledger hour went."""

    class CostClass(models.TextChoices):
        ASSIGNED = "assigned", _("assigned")
        TRANSITION = "transition", _("transition")
        IDLE = "idle", _("idle")
        UNAVAILABLE = "unavailable", _("unavailable")

    ledger_hour = models.ForeignKey(LedgerHour, on_delete=models.CASCADE, related_name="classes")
    cost_class = models.CharField(max_length=16, choices=CostClass)
    pool = models.CharField(max_length=200, blank=True)
    role = models.CharField(max_length=16, blank=True)
    accelerator_seconds = models.BigIntegerField()
    amount = amount_field()

    class Meta:
        ordering = ["ledger_hour", "cost_class", "pool", "role", "pk"]
        indexes = [models.Index(fields=["pool", "role"], name="finance_classhour_pool_role")]
        constraints = [
            models.UniqueConstraint(
                fields=["ledger_hour", "cost_class", "pool", "role"],
                name="finance_classhour_class_unique",
                violation_error_message=_("This class of the hour is stored already."),
            ),
            models.CheckConstraint(
                condition=Q(accelerator_seconds__gt=0),
                name="finance_classhour_seconds_positive",
                violation_error_message=_("A class has at least one accelerator-second."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ledger_hour_id} {self.cost_class}"
