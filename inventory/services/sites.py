"""Sites and their figures."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from inventory.models import Site
from inventory.services.placing import check_values, sentences

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

CHANGEABLE = (
    "name",
    "jurisdiction",
    "pue",
    "tariff_per_kwh",
    "currency",
    "carbon_grams_per_kwh",
    "figures",
    "air_gapped",
    "internal_hosts",
)


@transaction.atomic
def create_site(
    *,
    slug: str,
    name: str,
    country: str,
    jurisdiction: str = "",
    actor: "User",
    reason: str = "",
    **figures: Decimal | str | dict[str, Any] | None,
) -> Site:
    """Add a site; the jurisdiction is the country's unless it is given.

    `figures` may hold pue, tariff_per_kwh with currency, carbon_grams_per_kwh and figures (the
    sources). Raises ValueNotAllowedError, SlugTakenError or NotPermittedError.
    """
    permissions.require(actor, "inventory.add_site")
    site = Site(
        slug=slug, name=name, country=country, jurisdiction=jurisdiction or country, **figures
    )
    check_values(site)
    with sentences(site):
        site.save(force_insert=True)
    audit.record(actor=actor, action="site.create", subject=site, reason=reason, after=_shown(site))
    return site


@transaction.atomic
def change_site(*, site_id: UUID, reason: str, actor: "User", **changes: Any) -> Site:
    """Change the name, the jurisdiction or figures of a site.

    Raises ValueNotAllowedError for a figure out of range or a field that cannot be changed, or
    NotPermittedError.
    """
    site = Site.objects.select_for_update(no_key=True).get(pk=site_id)
    permissions.require(actor, "inventory.change_site", site)
    before = _shown(site)
    for field in set(changes) & set(CHANGEABLE):
        setattr(site, field, changes[field])
    check_values(site)
    with sentences(site):
        site.save()
    audit.record(
        actor=actor,
        action="site.change",
        subject=site,
        reason=reason,
        before=before,
        after=_shown(site),
    )
    return site


def _shown(site: Site) -> dict[str, Any]:
    """Fields of a site for the audit entry; numbers as text, so that nothing is rounded."""
    values = {field: getattr(site, field) for field in CHANGEABLE}
    return {
        field: str(value) if isinstance(value, Decimal) else value
        for field, value in values.items()
    }
