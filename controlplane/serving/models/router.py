"""Routers, the documents they read, and which of them has which."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Router(TimestampedModel):
    """One instance of the data plane: where it is driven, and when it was last heard."""

    name = models.CharField(_("name"), max_length=120, unique=True)
    admin_url = models.CharField(_("admin address"), max_length=300, unique=True)
    public_url = models.CharField(_("public address"), max_length=300)
    token_reference = models.CharField(
        _("reference of its token"),
        max_length=300,
        help_text=_("file:/path or env:NAME; the token itself is not stored."),
    )
    enabled = models.BooleanField(_("in use"), default=True)
    software_version = models.CharField(_("version of its software"), max_length=64, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    heard_at = models.DateTimeField(_("last heard"), null=True, blank=True)
    asked_at = models.DateTimeField(_("last asked"), null=True, blank=True)
    failure = models.CharField(_("why it was not heard"), max_length=300, blank=True)
    documents = models.JSONField(_("documents it has"), default=dict, blank=True)
    observed = models.JSONField(_("what it said last"), default=dict, blank=True)

    class Meta:
        ordering = ["name", "pk"]
        verbose_name = _("router")
        verbose_name_plural = _("routers")

    def __str__(self) -> str:
        return self.name


class PoolDocument(TimestampedModel):
    """An immutable version of what routers read about a pool."""

    pool = models.ForeignKey("serving.Pool", on_delete=models.PROTECT, related_name="documents")
    version = models.PositiveIntegerField(_("version"))
    content = models.TextField(_("content"))
    sha256 = models.CharField(_("hash"), max_length=64)
    body_sha256 = models.CharField(
        _("hash without version, author and time"), max_length=64, db_index=True
    )
    settings_sha256 = models.CharField(
        _("hash of what people decide"), max_length=64, blank=True, db_index=True
    )
    """Policy, limits, targets, models; without engines and keys. Empty before it was kept."""
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.CharField(_("reason"), max_length=300, blank=True)

    class Meta:
        ordering = ["pool", "-version", "pk"]
        verbose_name = _("pool document")
        verbose_name_plural = _("pool documents")
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "version"],
                name="serving_pooldocument_version_unique",
                violation_error_message=_("A pool has one document of each version."),
            ),
            models.CheckConstraint(
                condition=Q(version__gte=1),
                name="serving_pooldocument_version_from_one",
                violation_error_message=_("Versions of a document count from 1."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id} v{self.version}"


class RouterPush(TimestampedModel):
    """One document on its way to one router."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        ACKNOWLEDGED = "acknowledged", _("acknowledged")
        REFUSED = "refused", _("refused")
        FAILED = "failed", _("not reached")
        SUPERSEDED = "superseded", _("superseded")

    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="pushes")
    document = models.ForeignKey(PoolDocument, on_delete=models.PROTECT, related_name="pushes")
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.PENDING)
    canary = models.BooleanField(_("canary"), default=False)
    pointer = models.CharField(_("field that was refused"), max_length=300, blank=True)
    detail = models.TextField(_("detail"), blank=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)
    ended_at = models.DateTimeField(_("answered"), null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("router push")
        verbose_name_plural = _("router pushes")
        constraints = [
            models.UniqueConstraint(
                fields=["router", "document"],
                name="serving_routerpush_once_per_router_and_document",
                violation_error_message=_("A document is pushed to a router once."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.document_id} to {self.router_id}: {self.state}"
