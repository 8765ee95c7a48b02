"""Where nodes are."""

from decimal import Decimal

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from inventory.models.words import slug_field


class Site(TimestampedModel):
    """A building: the domain of failures, of the power price and of one jurisdiction."""

    slug = slug_field()
    name = models.CharField(_("name"), max_length=100)
    country = models.CharField(_("country"), max_length=2)
    """ISO 3166-1 alpha-2, upper case."""
    jurisdiction = models.CharField(_("jurisdiction"), max_length=32)
    """Code of the legal territory whose rules hold here, mostly the country's."""
    pue = models.DecimalField(_("PUE"), max_digits=5, decimal_places=3, null=True, blank=True)
    """Power usage effectiveness: power of the building over power of its machines, at least 1."""
    tariff_per_kwh = models.DecimalField(
        _("power price per kWh"), max_digits=12, decimal_places=6, null=True, blank=True
    )
    """Price of a kilowatt-hour in `currency`."""
    currency = models.CharField(_("currency"), max_length=3, blank=True)
    carbon_grams_per_kwh = models.DecimalField(
        _("carbon per kWh"), max_digits=8, decimal_places=2, null=True, blank=True
    )
    figures = models.JSONField(_("sources"), default=dict, blank=True)
    """For each figure above: {"source": text, "confidence": word}."""
    air_gapped = models.BooleanField(_("air-gapped"), default=False)
    """True: nothing here may ask anybody outside; see `internal_hosts`."""
    internal_hosts = ArrayField(
        models.CharField(max_length=253), verbose_name=_("hosts inside"), default=list, blank=True
    )
    """Registries and stores that count as inside: a host, or `.example.internal` for all below."""

    class Meta:
        ordering = ["slug", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(country__regex=r"^[A-Z]{2}$"),
                name="inventory_site_country_is_a_code",
                violation_error_message=_("Country is two capital letters (ISO 3166-1), like KR."),
            ),
            models.CheckConstraint(
                condition=Q(pue__isnull=True) | Q(pue__gte=Decimal(1)),
                name="inventory_site_pue_at_least_one",
                violation_error_message=_("PUE is at least 1."),
            ),
            models.CheckConstraint(
                condition=Q(tariff_per_kwh__isnull=True)
                | (Q(tariff_per_kwh__gte=Decimal(0)) & Q(currency__regex=r"^[A-Z]{3}$")),
                name="inventory_site_tariff_has_a_currency",
                violation_error_message=_(
                    "A power price is not negative and has a currency (three letters, like KRW)."
                ),
            ),
            models.CheckConstraint(
                condition=Q(carbon_grams_per_kwh__isnull=True)
                | Q(carbon_grams_per_kwh__gte=Decimal(0)),
                name="inventory_site_carbon_not_negative",
                violation_error_message=_("Carbon per kWh is not negative."),
            ),
        ]

    def __str__(self) -> str:
        return self.slug
