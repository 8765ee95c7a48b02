"""People, and the names of the roles that come with the product."""

import zoneinfo

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel

USERNAME = RegexValidator(
    r"^[a-z0-9][a-z0-9._-]{0,63}\Z",
    _(
        "A user name has 1 to 64 characters: a to z, 0 to 9, '.', '_', '-'; "
        "the first is a letter or digit."
    ),
)


class Role(models.TextChoices):
    """Shipped roles; `permissions.py` says what each may do."""

    PLATFORM_ADMIN = "platform-admin", _("platform administrator")
    FLEET_OPERATOR = "fleet-operator", _("fleet operator")
    ROLE_ASSIGNER = "role-assigner", _("role assigner")
    APPROVER = "approver", _("approver")
    ROUTER_ENGINEER = "router-engineer", _("router engineer")
    TENANT_ADMIN = "tenant-admin", _("tenant administrator")
    TENANT_VIEWER = "tenant-viewer", _("tenant viewer")
    FINANCE = "finance", _("finance")
    AUDITOR = "auditor", _("auditor")
    READONLY = "readonly", _("read only")


TENANT_ROLES = [Role.TENANT_ADMIN.value, Role.TENANT_VIEWER.value]


class Theme(models.TextChoices):
    """Colours of the console."""

    SYSTEM = "system", _("as the system")
    LIGHT = "light", _("light")
    DARK = "dark", _("dark")


def validate_time_zone(name: str) -> None:
    """Refuse a name that is not in the time zone database."""
    if name not in zoneinfo.available_timezones():
        raise ValidationError(
            _("'%(name)s' is not a time zone. Use a name such as Asia/Seoul or UTC."),
            code="time_zone",
            params={"name": name},
        )


class User(AbstractBaseUser, TimestampedModel):
    """A person. With a tenant, only rows of that tenant are visible; without, the platform's."""

    username = models.CharField(
        _("user name"), max_length=64, unique=True, validators=[USERNAME],
        error_messages={"unique": _("This user name is taken.")},
    )  # fmt: skip
    full_name = models.CharField(_("full name"), max_length=100, blank=True)
    language = models.CharField(_("language"), max_length=8, default="en")
    time_zone = models.CharField(
        _("time zone"), max_length=64, default="UTC", validators=[validate_time_zone]
    )
    theme = models.CharField(_("theme"), max_length=8, choices=Theme, default=Theme.SYSTEM)
    is_active = models.BooleanField(_("active"), default=True)
    roles = ArrayField(models.CharField(max_length=32, choices=Role), default=list, blank=True)
    tenant = models.ForeignKey(
        "tenancy.Tenant", on_delete=models.PROTECT, null=True, blank=True, related_name="users"
    )

    USERNAME_FIELD = "username"
    objects = BaseUserManager()

    token_scopes: frozenset[str] | None = None
    """Scopes of the token that acts for the person in this request; None for a session."""
    token_networks: tuple[str, ...] = ()
    """Networks that the token works from; empty is everywhere, and for a session."""

    class Meta:
        ordering = ["username", "pk"]
        verbose_name = _("user")
        constraints = [
            models.CheckConstraint(
                condition=Q(tenant__isnull=True) | Q(roles__contained_by=TENANT_ROLES),
                name="tenancy_user_of_tenant_has_tenant_roles",
                violation_error_message=_(
                    "A person of a tenant can be tenant administrator or tenant viewer, "
                    "nothing else."
                ),
            )
        ]

    def __str__(self) -> str:
        return self.username

    @property
    def display_name(self) -> str:
        """Full name, or the user name where there is none."""
        return self.full_name or self.username
