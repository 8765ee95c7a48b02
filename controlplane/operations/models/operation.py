"""Long work as rows that people can watch."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Operation(TimestampedModel):
    """Work longer than about a second; committed before its task is sent, safe to deliver twice."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        SUCCEEDED = "succeeded", _("succeeded")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)

    kind = models.CharField(_("kind"), max_length=64)
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.PENDING)
    task = models.CharField(max_length=200)
    """Dotted path of the task that does the work; its only argument is the id of this row."""
    subject_type = models.CharField(max_length=100, blank=True)
    subject_id = models.CharField(max_length=64, blank=True)
    subject_repr = models.CharField(max_length=200, blank=True)
    tenant = models.ForeignKey(
        "tenancy.Tenant", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    request_id = models.CharField(max_length=36, blank=True)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    progress_unit = models.CharField(max_length=32, default="steps")
    attempt = models.PositiveIntegerField(default=0)
    """Grows with every claim; whoever writes names the attempt it claimed."""
    lost = models.PositiveIntegerField(default=0)
    """Attempts since the start or the last retry whose worker was not heard of again."""
    claimed_until = models.DateTimeField(null=True, blank=True)
    """While running: when the claim lapses unless renewed, so that a dead worker loses it."""
    sent_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    """A problem document: code, title, detail, hint."""

    class Meta:
        ordering = ["-created_at", "-pk"]
        verbose_name = _("operation")
        indexes = [
            models.Index(
                fields=["subject_type", "subject_id"], name="operations_operation_subject"
            ),
            models.Index(
                fields=["sent_at"], condition=Q(state__in=["pending", "running"]),
                name="operations_operation_open",
            ),
        ]  # fmt: skip
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["succeeded", "failed", "cancelled"])
                ^ Q(finished_at__isnull=True),
                name="operations_operation_finished_at_iff_ended",
                violation_error_message=_("finished_at is set exactly when the operation ended."),
            ),
            models.CheckConstraint(
                condition=Q(progress_total=0) | Q(progress_done__lte=F("progress_total")),
                name="operations_operation_progress_within_total",
                violation_error_message=_("Progress cannot pass its total."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_repr}".strip()

    @property
    def has_ended(self) -> bool:
        """True once nothing more will happen, unless it is retried."""
        return self.state in self.ENDED


class OperationStep(models.Model):
    """One named part of an operation; may run twice, and `attempt` says how often it did."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        SUCCEEDED = "succeeded", _("succeeded")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("skipped")
        UNDONE = "undone", _("undone")

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=State, default=State.PENDING)
    attempt = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    detail = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["operation", "position"]
        constraints = [
            models.UniqueConstraint(
                "operation", "name", name="operations_operationstep_name_unique_in_operation"
            )
        ]

    def __str__(self) -> str:
        return self.name
