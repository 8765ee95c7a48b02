"""Change plans, their approvals and their waves."""

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from controlplane.serving.models.assignment import Role

TIMES = [MinValueValidator(0), MaxValueValidator(86_400)]


class ChangePlan(TimestampedModel):
    """A change of roles computed before anything happens, for exactly one state of the pool."""

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        PROPOSED = "proposed", _("proposed")
        APPROVED = "approved", _("approved")
        APPLYING = "applying", _("applying")
        SUCCEEDED = "succeeded", _("succeeded")
        ROLLED_BACK = "rolled_back", _("rolled back")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    serial = models.PositiveIntegerField(_("serial"), unique=True, editable=False)
    pool = models.ForeignKey("serving.Pool", on_delete=models.PROTECT, related_name="plans")
    role = models.CharField(
        _("role afterwards"),
        max_length=16,
        choices=Role,
        blank=True,
        help_text=_("Empty when the plan releases the accelerators."),
    )
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.DRAFT)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="change_plans"
    )
    reason = models.CharField(_("reason"), max_length=300)
    diff = models.JSONField(_("difference"), default=list)
    checks = models.JSONField(_("checks"), default=list, blank=True)
    effects = models.JSONField(_("effects"), default=dict, blank=True)
    guards = models.JSONField(_("guards"), default=dict, blank=True)
    accelerators_per_wave = models.PositiveIntegerField(
        _("accelerators per wave"), default=1, validators=[MinValueValidator(1)]
    )
    floor_share = models.FloatField(
        _("capacity floor (share)"),
        default=0.5,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
    )
    soak_seconds = models.FloatField(_("soak time (s)"), default=30.0, validators=TIMES)
    drain_seconds = models.FloatField(_("longest drain (s)"), default=60.0, validators=TIMES)
    ready_seconds = models.FloatField(_("longest start (s)"), default=600.0, validators=TIMES)
    prefetch_seconds = models.FloatField(
        _("longest prefetch (s)"), default=7200.0, validators=TIMES
    )
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    expires_at = models.DateTimeField(_("expires"))
    operation = models.ForeignKey(
        "operations.Operation", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    proposed_at = models.DateTimeField(_("proposed"), null=True, blank=True)
    applied_at = models.DateTimeField(_("applied"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    paused_at = models.DateTimeField(_("paused"), null=True, blank=True)
    rolling_back = models.BooleanField(_("rolling back"), default=False)
    cancelling = models.BooleanField(_("waves not begun are dropped"), default=False)
    outcome = models.TextField(_("outcome"), blank=True)
    simulated = models.BooleanField(_("simulated"), default=False)

    class Meta:
        ordering = ["-serial", "pk"]
        verbose_name = _("change plan")
        verbose_name_plural = _("change plans")
        constraints = [
            models.UniqueConstraint(
                fields=["pool"],
                condition=Q(state="applying"),
                name="serving_changeplan_one_applying_per_pool",
                violation_error_message=_("Another plan of this pool is being applied."),
            ),
            models.CheckConstraint(
                condition=Q(floor_share__gte=0, floor_share__lte=1),
                name="serving_changeplan_floor_is_a_share",
                violation_error_message=_("The capacity floor is a share from 0 to 1."),
            ),
            models.CheckConstraint(
                condition=Q(accelerators_per_wave__gte=1),
                name="serving_changeplan_waves_not_empty",
                violation_error_message=_("A wave has at least one accelerator."),
            ),
            models.CheckConstraint(
                condition=Q(soak_seconds__gte=0, drain_seconds__gte=0, ready_seconds__gt=0),
                name="serving_changeplan_times_not_negative",
                violation_error_message=_("Times of a plan are zero seconds or more."),
            ),
        ]

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        """What people call the plan, for example CP-0042."""
        return f"CP-{self.serial:04d}"

    @property
    def is_open(self) -> bool:
        """True until the plan has ended in one way or another."""
        return self.state in {
            self.State.DRAFT,
            self.State.PROPOSED,
            self.State.APPROVED,
            self.State.APPLYING,
        }


class Approval(TimestampedModel):
    """Consent of a second person to a plan as it is."""

    plan = models.ForeignKey(ChangePlan, on_delete=models.PROTECT, related_name="approvals")
    approver = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="approvals"
    )
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    comment = models.CharField(_("comment"), max_length=300, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "approver"],
                name="serving_approval_once_per_person",
                violation_error_message=_("A person approves a plan once."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.plan_id} by {self.approver_id}"


class Wave(TimestampedModel):
    """Accelerators of a plan that change together, and how far they are."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        SUCCEEDED = "succeeded", _("succeeded")
        ROLLED_BACK = "rolled_back", _("rolled back")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("skipped")

    class Step(models.TextChoices):
        """The step that the wave is at; it has done all steps before."""

        PREFETCH = "prefetch", _("prefetch")
        DRAIN = "drain", _("drain")
        SWITCH = "switch", _("switch")
        START = "start", _("start")
        READY = "ready", _("ready")
        ADD = "add", _("add")
        OBSERVE = "observe", _("observe")
        DONE = "done", _("done")

    plan = models.ForeignKey(ChangePlan, on_delete=models.PROTECT, related_name="waves")
    position = models.PositiveIntegerField(_("position"))
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.PENDING)
    step = models.CharField(_("step"), max_length=16, choices=Step, default=Step.DRAIN)
    backwards = models.BooleanField(_("backwards"), default=False)
    items = models.JSONField(_("changes"), default=list)
    detail = models.JSONField(_("what was seen"), default=dict, blank=True)
    step_started_at = models.DateTimeField(_("step started"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        ordering = ["plan", "position", "pk"]
        verbose_name = _("wave")
        verbose_name_plural = _("waves")
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "position"],
                name="serving_wave_position_unique",
                violation_error_message=_("A plan has one wave at each position."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.plan_id} #{self.position}"
