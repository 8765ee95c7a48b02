"""What others may want to hear."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class OutboxEvent(TimestampedModel):
    """An event, written in the transaction of its change; no secrets, prompts or completions."""

    type = models.CharField(max_length=100)
    subject_type = models.CharField(max_length=100)
    subject_id = models.CharField(max_length=64)
    subject_repr = models.CharField(max_length=200)
    tenant = models.ForeignKey(
        "tenancy.Tenant", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    data = models.JSONField(default=dict)
    request_id = models.CharField(max_length=36, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]
        verbose_name = _("event")
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(dispatched_at__isnull=True),
                name="operations_outboxevent_open",
            ),
            models.Index(
                fields=["subject_type", "subject_id"], name="operations_outboxevent_subject"
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.type} {self.subject_repr}"
