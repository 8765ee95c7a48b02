"""The role ledger: who was what, when. Rows are opened and ended, never edited."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Role(models.TextChoices):
    """What an assignment makes of its accelerators."""

    PREFILL = "prefill", _("prefill")
    DECODE = "decode", _("decode")
    BOTH = "both", _("prefill and decode")


class RoleAssignmentQuerySet(models.QuerySet["RoleAssignment"]):
    """Reads of the ledger at a point in time."""

    def at(self, moment: datetime) -> Self:
        """Assignments in force at a moment; the end of a period does not belong to it."""
        return self.filter(valid_from__lte=moment).filter(
            Q(valid_to__isnull=True) | Q(valid_to__gt=moment)
        )

    def overlapping(self, start: datetime, end: datetime) -> Self:
        """Assignments in force at some time in [start, end)."""
        return self.filter(valid_from__lt=end).filter(
            Q(valid_to__isnull=True) | Q(valid_to__gt=start)
        )

    def open(self) -> Self:
        """Assignments without an end."""
        return self.filter(valid_to__isnull=True)


class RoleAssignment(TimestampedModel):
    """Accelerators of one node serve a pool in a role, from one time to another."""

    pool = models.ForeignKey("serving.Pool", on_delete=models.PROTECT, related_name="assignments")
    node = models.ForeignKey(
        "inventory.Node", on_delete=models.PROTECT, related_name="role_assignments"
    )
    role = models.CharField(_("role"), max_length=16, choices=Role)
    accelerators = models.ManyToManyField(
        "inventory.Accelerator",
        through="serving.AssignedAccelerator",
        related_name="role_assignments",
    )
    valid_from = models.DateTimeField(_("from"))
    valid_to = models.DateTimeField(_("until"), null=True, blank=True)
    change_plan = models.ForeignKey(
        "serving.ChangePlan",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="assignments",
    )
    reason = models.CharField(_("reason"), max_length=300)
    simulated = models.BooleanField(_("simulated"), default=False)

    objects = RoleAssignmentQuerySet.as_manager()

    class Meta:
        ordering = ["-valid_from", "pk"]
        verbose_name = _("role assignment")
        verbose_name_plural = _("role assignments")
        indexes = [
            models.Index(fields=["pool", "valid_from"], name="serving_assignment_pool_from"),
            models.Index(fields=["node", "valid_from"], name="serving_assignment_node_from"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(valid_to__isnull=True) | Q(valid_to__gt=F("valid_from")),
                name="serving_roleassignment_ends_after_it_starts",
                violation_error_message=_("An assignment ends after it starts."),
            ),
            models.CheckConstraint(
                condition=Q(role__in=Role.values),
                name="serving_roleassignment_role_known",
                violation_error_message=_("A role is prefill, decode or both."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node_id}: {self.role}"


class AssignedAccelerator(TimestampedModel):
    """One accelerator of an assignment; `open` as long as the assignment has no end."""

    assignment = models.ForeignKey(RoleAssignment, on_delete=models.PROTECT, related_name="members")
    accelerator = models.ForeignKey(
        "inventory.Accelerator", on_delete=models.PROTECT, related_name="memberships"
    )
    open = models.BooleanField(_("open"), default=True)

    class Meta:
        ordering = ["assignment", "accelerator", "pk"]
        verbose_name = _("assigned accelerator")
        verbose_name_plural = _("assigned accelerators")
        constraints = [
            models.UniqueConstraint(
                fields=["accelerator"],
                condition=Q(open=True),
                name="serving_assignedaccelerator_one_open",
                violation_error_message=_("The accelerator has an open role assignment already."),
            ),
            models.UniqueConstraint(
                fields=["assignment", "accelerator"],
                name="serving_assignedaccelerator_once_per_assignment",
                violation_error_message=_("An assignment names an accelerator once."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.accelerator_id} in {self.assignment_id}"
