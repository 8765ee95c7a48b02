"""Answers kept per Idempotency-Key."""

from django.conf import settings
from django.db import models

from controlplane.common.models import TimestampedModel


class IdempotencyRecord(TimestampedModel):
    """One keyed request of one actor; running until effect and answer commit together."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=128)
    fingerprint = models.CharField(max_length=64)
    """SHA-256 over method, path, sorted query and canonical JSON body, in hexadecimal."""
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    locked_until = models.DateTimeField()
    response_status = models.PositiveSmallIntegerField(null=True)
    response_headers = models.JSONField(null=True)
    response_body = models.BinaryField(null=True)
    operation_id = models.UUIDField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                "actor", "key", name="operations_idempotencyrecord_key_unique_per_actor"
            )
        ]

    def __str__(self) -> str:
        return self.key
