"""Organisation, tenant, project: what is set above can only be tightened below."""

import re

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel

SLUG = RegexValidator(
    re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z"),
    _("A slug has 1 to 63 characters: a to z, 0 to 9 and '-', no '-' at the ends."),
)
NAME = RegexValidator(
    re.compile(r"^[^=+\-@\t\r]"),
    _("A name may not start with '=', '+', '-', '@', a tab or a carriage return."),
)


class Organisation(TimestampedModel):
    """A customer or a department; owns tenants."""

    slug = models.CharField(_("slug"), max_length=63, unique=True, validators=[SLUG])
    name = models.CharField(_("name"), max_length=100, validators=[NAME])

    class Meta:
        ordering = ["slug", "pk"]
        verbose_name = _("organisation")

    def __str__(self) -> str:
        return self.slug


class Tenant(TimestampedModel):
    """The border nobody looks across: people, keys, usage and limits belong to one tenant."""

    class State(models.TextChoices):
        PROVISIONING = "provisioning", _("provisioning")
        ACTIVE = "active", _("active")
        SUSPENDED = "suspended", _("suspended")
        RETIRED = "retired", _("retired")

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="tenants")
    slug = models.CharField(_("slug"), max_length=63, unique=True, validators=[SLUG])
    name = models.CharField(_("name"), max_length=100, validators=[NAME])
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.ACTIVE)
    jurisdictions = ArrayField(models.CharField(max_length=2), default=list, blank=True)
    """Country codes (ISO 3166-1 alpha-2) where its requests may run; empty is no restriction."""
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["slug", "pk"]
        verbose_name = _("tenant")
        constraints = [
            models.CheckConstraint(
                condition=Q(state="retired") ^ Q(retired_at__isnull=True),
                name="tenancy_tenant_retired_at_iff_retired",
                violation_error_message=_("retired_at is set exactly when the tenant is retired."),
            )
        ]

    def __str__(self) -> str:
        return self.slug


class Project(TimestampedModel):
    """A part of a tenant with keys and limits of its own."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    slug = models.CharField(_("slug"), max_length=63, validators=[SLUG])
    name = models.CharField(_("name"), max_length=100, validators=[NAME])
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["tenant", "slug", "pk"]
        verbose_name = _("project")
        constraints = [
            models.UniqueConstraint(
                "tenant",
                "slug",
                name="tenancy_project_slug_unique_in_tenant",
                violation_error_message=_("The tenant has a project with this slug."),
            )
        ]

    def __str__(self) -> str:
        return self.slug
