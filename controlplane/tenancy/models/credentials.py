"""Secrets of machines, stored as hashes: tokens of the control plane and keys of the data plane."""

import ipaddress
from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class ApiToken(TimestampedModel):
    """Lets a machine act for its owner in the control plane, within scopes, networks and time."""

    owner = models.ForeignKey("tenancy.User", on_delete=models.PROTECT, related_name="api_tokens")
    tenant = models.ForeignKey("tenancy.Tenant", on_delete=models.PROTECT, null=True, blank=True)
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(max_length=32, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    """HMAC-SHA256 of the secret with the pepper of `pepper_version`, in hexadecimal."""
    pepper_version = models.PositiveSmallIntegerField(default=1)
    scopes = ArrayField(models.CharField(max_length=32))
    allowed_networks = ArrayField(models.CharField(max_length=43), default=list, blank=True)
    """CIDR networks the token works from; empty is everywhere."""
    expires_at = models.DateTimeField(_("expires at"))
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("API token")

    def __str__(self) -> str:
        return self.prefix

    def is_live(self, *, now: datetime) -> bool:
        """True until it expires or is revoked."""
        return self.revoked_at is None and now < self.expires_at

    def allows_address(self, address: str) -> bool:
        """True if the address lies in an allowed network; without networks, any."""
        if not self.allowed_networks:
            return True
        if not address:
            return False
        return any(
            ipaddress.ip_address(address) in ipaddress.ip_network(network)
            for network in self.allowed_networks
        )


class InferenceKey(TimestampedModel):
    """Lets clients of a project use models through the routers; its project never changes."""

    tenant = models.ForeignKey(
        "tenancy.Tenant", on_delete=models.PROTECT, related_name="inference_keys"
    )
    project = models.ForeignKey(
        "tenancy.Project", on_delete=models.PROTECT, related_name="inference_keys"
    )
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(max_length=32, unique=True)
    sha256 = models.CharField(max_length=64, unique=True)
    """SHA-256 of the secret in hexadecimal; it has 256 random bits, so no pepper is needed."""
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey("tenancy.User", on_delete=models.PROTECT, null=True, blank=True)
    highest_priority = models.IntegerField(_("highest priority"), default=0)
    """Requests may ask for priorities up to this one, by number or by the name of an objective."""
    # Last, because from here on the name hides Django's module.
    models = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    """Names of models it may use; empty is every model of the tenant's pools."""

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("inference key")

    def __str__(self) -> str:
        return self.prefix
