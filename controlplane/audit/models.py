"""The record of who did what, and the hash chain that proves nobody edited it."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from controlplane.common.ids import uuid7


class AuditEntry(models.Model):
    """One thing that somebody did or was refused. Insert only: a trigger refuses the rest.

    Names of people live in the user table only, so erasing a person leaves the chain whole.
    """

    class Result(models.TextChoices):
        ALLOWED = "allowed", _("allowed")
        DENIED = "denied", _("denied")
        ERROR = "error", _("error")

    class ActorKind(models.TextChoices):
        USER = "user", _("person")
        TOKEN = "token", _("token")
        WORKER = "worker", _("worker")
        SYSTEM = "system", _("system")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    time = models.DateTimeField(_("time"), default=timezone.now)
    # No database constraints here: an entry outlives what it is about.
    tenant = models.ForeignKey(
        "tenancy.Tenant", on_delete=models.DO_NOTHING, db_constraint=False, null=True,
        related_name="+",
    )  # fmt: skip
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, db_constraint=False, null=True,
        related_name="+",
    )  # fmt: skip
    actor_kind = models.CharField(max_length=16, choices=ActorKind)
    auth_method = models.CharField(max_length=32, blank=True)
    source_ip = models.GenericIPAddressField(null=True)
    object_type = models.CharField(max_length=100)
    object_id = models.CharField(max_length=64)
    object_repr = models.CharField(max_length=200)
    action = models.CharField(_("action"), max_length=100)
    result = models.CharField(_("result"), max_length=8, choices=Result, default=Result.ALLOWED)
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    message = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    request_id = models.CharField(max_length=36, blank=True)
    operation_id = models.UUIDField(null=True)

    class Meta:
        ordering = ["-time", "-pk"]
        verbose_name = _("audit entry")
        indexes = [
            models.Index(fields=["object_type", "object_id", "-time"], name="audit_entry_object"),
            models.Index(fields=["actor", "action", "-time"], name="audit_entry_actor"),
            models.Index(fields=["-time", "-id"], name="audit_entry_time"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.object_repr}"


class AuditLink(models.Model):
    """One link of the chain: gapless numbers over committed entries. Insert only."""

    seq = models.BigIntegerField(primary_key=True)
    entry = models.OneToOneField(
        AuditEntry, on_delete=models.DO_NOTHING, db_constraint=False, related_name="link"
    )
    entry_hash = models.BinaryField(max_length=32)
    prev_hash = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta:
        ordering = ["seq"]
        verbose_name = _("audit link")

    def __str__(self) -> str:
        return str(self.seq)
