"""Scenarios, their runs, advice, and live races."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from controlplane.operations.models import Operation

MOST_RACES = 2
"""Live races at once; each takes up to a core, and a worker process of its own."""
LEAST_RATE, MOST_RATE = 1, 40
"""Requests per second of a live race. Beyond, both pools are several times overloaded."""


class Scenario(TimestampedModel):
    """A fleet, models, traffic and targets to plan for; a run copies it, so it may change."""

    class Origin(models.TextChoices):
        FLEET = "fleet", _("from the fleet")
        STATED = "stated", _("stated")

    name = models.CharField(_("name"), max_length=120)
    note = models.CharField(_("note"), max_length=300, blank=True)
    origin = models.CharField(_("origin"), max_length=16, choices=Origin, default=Origin.STATED)
    problem = models.JSONField(_("fleet, traffic and targets"))
    """As `routing.planner.problem.Problem` reads it."""
    members = models.JSONField(_("accelerators by group"), default=dict, blank=True)
    """Ids of the accelerators behind each group; empty for a stated fleet."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="scenarios"
    )
    retired_at = models.DateTimeField(_("retired"), null=True, blank=True)
    simulated = models.BooleanField(_("simulated"), default=False)

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("scenario")
        verbose_name_plural = _("scenarios")
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=Q(retired_at__isnull=True),
                name="planning_scenario_live_name_unique",
                violation_error_message=_("Another scenario has this name."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class ScenarioRun(TimestampedModel):
    """One run of the planner over a scenario as it was; its operation says how far it is."""

    scenario = models.ForeignKey(Scenario, on_delete=models.PROTECT, related_name="runs")
    operation = models.OneToOneField(
        "operations.Operation", on_delete=models.PROTECT, related_name="+"
    )
    seed = models.PositiveIntegerField(_("seed"), default=1)
    engine_model = models.CharField(_("version of the engine model"), max_length=32)
    problem = models.JSONField(_("fleet, traffic and targets"))
    members = models.JSONField(_("accelerators by group"), default=dict, blank=True)
    result = models.JSONField(_("result"), null=True, blank=True)
    """As `routing.planner.advice.Plan`; None until the run has succeeded, whole then."""
    error_band = models.JSONField(_("model error"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="scenario_runs"
    )

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("scenario run")
        verbose_name_plural = _("scenario runs")
        constraints = [
            models.CheckConstraint(
                condition=Q(result__isnull=True, error_band__isnull=True, finished_at__isnull=True)
                | Q(result__isnull=False, error_band__isnull=False, finished_at__isnull=False),
                name="planning_scenariorun_result_is_whole",
                violation_error_message=_("A result comes with its model error and its time."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.scenario} {self.created_at:%Y-%m-%d %H:%M}" if self.created_at else "run"

    @property
    def state(self) -> str:
        """Of the operation."""
        return self.operation.state

    @property
    def observed_at(self) -> datetime:
        """When the operation moved last; part of the tag by which readers notice."""
        return self.operation.updated_at

    @property
    def has_ended(self) -> bool:
        """True once nothing more will happen, unless the operation is retried."""
        return self.operation.state in Operation.ENDED


class Advice(TimestampedModel):
    """What to do with one pool, with the evidence; standing advice has no run behind it."""

    class Verdict(models.TextChoices):
        KEEP = "keep", _("keep the roles")
        BOTH = "both", _("both phases everywhere")
        SPLIT = "split", _("split the phases")
        IMPOSSIBLE = "impossible", _("cannot be served")

    run = models.ForeignKey(
        ScenarioRun, on_delete=models.PROTECT, null=True, blank=True, related_name="advice"
    )
    pool = models.ForeignKey(
        "serving.Pool", on_delete=models.PROTECT, null=True, blank=True, related_name="advice"
    )
    """None when the scenario's pool is not one of this installation."""
    name = models.CharField(_("pool"), max_length=120)
    verdict = models.CharField(_("advice"), max_length=16, choices=Verdict)
    gain = models.FloatField(_("gain in goodput"), null=True, blank=True)
    content = models.JSONField(_("evidence"))
    """As `routing.planner.advice.PoolAdvice`."""
    error_band = models.JSONField(_("model error"))
    members = models.JSONField(_("accelerators by group"), default=dict, blank=True)
    is_standing = models.BooleanField(_("standing"), default=False)
    measured_from = models.DateTimeField(_("load measured from"), null=True, blank=True)
    measured_to = models.DateTimeField(_("load measured to"), null=True, blank=True)
    change_plan = models.ForeignKey(
        "serving.ChangePlan", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("advice")
        verbose_name_plural = _("advice")
        indexes = [
            models.Index(fields=["pool", "-created_at"], name="planning_advice_pool_time"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "name"],
                condition=Q(run__isnull=False),
                name="planning_advice_once_per_pool_of_a_run",
                violation_error_message=_("A run advises a pool once."),
            ),
            models.UniqueConstraint(
                fields=["pool", "measured_to"],
                condition=Q(is_standing=True),
                name="planning_advice_standing_once_per_quarter",
                violation_error_message=_("This quarter of an hour was looked at already."),
            ),
            models.CheckConstraint(
                condition=Q(is_standing=False)
                | Q(pool__isnull=False, measured_from__isnull=False, measured_to__isnull=False),
                name="planning_advice_standing_names_its_load",
                violation_error_message=_("Standing advice names the pool and the measured time."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}"

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The advised option; None when nothing can serve the pool."""
        option: dict[str, Any] | None = self.content.get("chosen")
        return option


class LiveRace(TimestampedModel):
    """Two simulated pools under the same traffic, run in a worker while somebody watches.

    Figures are in the cache (`board`): they are gone a moment later anyway.
    """

    class End(models.TextChoices):
        STOPPED = "stopped", _("stopped")
        UNWATCHED = "unwatched", _("nobody watched")
        TIME = "time", _("time is over")
        LOST = "lost", _("the worker is gone")
        UNCLAIMED = "unclaimed", _("no worker took it")
        FAILED = "failed", _("failed")

    operation = models.OneToOneField(
        "operations.Operation", on_delete=models.PROTECT, related_name="+"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="live_races"
    )
    slot = models.PositiveSmallIntegerField(_("slot"))
    rate_qps = models.FloatField(_("requests per second"))
    seed = models.PositiveIntegerField(_("seed"), default=1)
    begun_at = models.DateTimeField(_("begun"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    end = models.CharField(_("why it ended"), max_length=16, choices=End, blank=True)

    class Meta:
        ordering = ["-created_at", "pk"]
        verbose_name = _("live race")
        verbose_name_plural = _("live races")
        constraints = [
            models.UniqueConstraint(
                fields=["created_by"],
                condition=Q(ended_at__isnull=True),
                name="planning_liverace_one_per_person",
                violation_error_message=_("A race of yours runs already."),
            ),
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(ended_at__isnull=True),
                name="planning_liverace_slot_unique",
                violation_error_message=_("Another race has this slot."),
            ),
            models.CheckConstraint(
                condition=Q(slot__gte=1, slot__lte=MOST_RACES),
                name="planning_liverace_slot_in_bounds",
                violation_error_message=_("There are not so many slots."),
            ),
            models.CheckConstraint(
                condition=Q(rate_qps__gte=LEAST_RATE, rate_qps__lte=MOST_RATE),
                name="planning_liverace_rate_in_bounds",
                violation_error_message=_("The rate is out of bounds."),
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, end="")
                | (Q(ended_at__isnull=False) & ~Q(end="")),
                name="planning_liverace_end_iff_ended",
                violation_error_message=_("A race that has ended says why."),
            ),
        ]

    def __str__(self) -> str:
        return f"race of {self.created_by_id}"

    @property
    def is_open(self) -> bool:
        """It waits for a worker, or runs."""
        return self.ended_at is None
