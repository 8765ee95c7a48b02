"""Decision records as the routers sampled them, and what their shadow policies did.

Tenant, project, pool, model and endpoints are the names that stood in the record. There is no
prompt text in a record, so there is none here.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class RouterReading(TimestampedModel):
    """How far one router's ring of decisions has been read."""

    router = models.CharField(max_length=200, unique=True)
    started_at = models.FloatField(default=0.0)
    """Unix time of the router's start, which its numbers count from."""
    last_number = models.BigIntegerField(default=0)
    read_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)
    left_out = models.BigIntegerField(default=0)
    """Decisions since its start that came faster than they are recorded."""
    missed = models.BigIntegerField(default=0)
    """Lines that had left the ring before they were read."""
    sample_rates = models.JSONField(default=dict)
    """Share of ordinary decisions that it records, per pool."""
    shadow = models.JSONField(default=dict)
    """Its sums per pool and shadow policy, as they were last read."""

    class Meta:
        ordering = ["router", "pk"]

    def __str__(self) -> str:
        return self.router


class Decision(TimestampedModel):
    """One sampled choice, refusal included; `record` is what the router wrote."""

    class Outcome(models.TextChoices):
        OPEN = "open", _("not ended")
        OK = "ok", _("answered")
        ERROR = "error", _("failed")
        ABORTED = "aborted", _("aborted")
        REFUSED = "refused", _("refused")

    router = models.CharField(max_length=200)
    router_started_at = models.FloatField()
    number = models.BigIntegerField()
    decision_id = models.CharField(max_length=250)
    at = models.DateTimeField(_("time"))
    pool = models.CharField(max_length=200)
    document_version = models.BigIntegerField()
    document_hash = models.CharField(max_length=64, blank=True)
    policy = models.CharField(max_length=64)
    decided_by = models.CharField(max_length=64, blank=True)
    tenant = models.CharField(max_length=200, blank=True)
    project = models.CharField(max_length=200, blank=True)
    key = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    attempt = models.PositiveSmallIntegerField(default=1)
    destination = models.CharField(max_length=200, blank=True)
    prefill = models.CharField(max_length=200, blank=True)
    """Endpoint that computed the prompt; empty when the destination did."""
    runner_up = models.CharField(max_length=200, blank=True)
    margin_seconds = models.FloatField(null=True, blank=True)
    prompt_tokens = models.BigIntegerField(null=True, blank=True)
    hit_tokens = models.BigIntegerField(null=True, blank=True)
    uncached_tokens = models.BigIntegerField(null=True, blank=True)
    predicted_ttft_seconds = models.FloatField(null=True, blank=True)
    real_ttft_seconds = models.FloatField(null=True, blank=True)
    cached_tokens = models.BigIntegerField(null=True, blank=True)
    """What the engine reported; compare with `hit_tokens`."""
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.OPEN)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    refusal_code = models.CharField(max_length=64, blank=True)
    prefix = models.CharField(max_length=16, blank=True)
    """Key of the first block of the prompt: equal for prompts that begin alike."""
    held = models.JSONField(default=dict)
    """Tokens of the prompt that each endpoint was believed to hold, where any."""
    record = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "pk"]
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        indexes = [
            models.Index(fields=["-at", "id"], name="routing_decision_at"),
            models.Index(fields=["tenant", "-at"], name="routing_decision_tenant_at"),
            models.Index(fields=["pool", "-at"], name="routing_decision_pool_at"),
            models.Index(fields=["decision_id"], name="routing_decision_own_id"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["router", "router_started_at", "number"],
                name="routing_decision_number_unique",
                violation_error_message=_("This decision is stored already."),
            ),
            models.CheckConstraint(
                condition=~Q(outcome="refused") | ~Q(refusal_code=""),
                name="routing_decision_refusal_has_a_code",
                violation_error_message=_("A refusal has the code of its rule."),
            ),
        ]

    def __str__(self) -> str:
        return self.decision_id


class ShadowHour(TimestampedModel):
    """Sums of one shadow policy over the routers of a pool in one hour."""

    pool = models.CharField(max_length=200)
    policy = models.CharField(max_length=64)
    live = models.CharField(max_length=64, blank=True)
    """Policy that decided; regret is against its choices."""
    hour = models.DateTimeField()
    asked = models.BigIntegerField(default=0)
    agreed = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    priced = models.BigIntegerField(default=0)
    """Choices with a known price, over which the sums of seconds run."""
    regret_seconds = models.FloatField(default=0.0)
    ttft_seconds = models.FloatField(default=0.0)
    live_ttft_seconds = models.FloatField(default=0.0)

    SUMS = (
        "asked", "agreed", "refused", "priced", "regret_seconds", "ttft_seconds",
        "live_ttft_seconds",
    )  # fmt: skip

    class Meta:
        ordering = ["-hour", "pool", "policy", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "policy", "live", "hour"],
                name="routing_shadowhour_once",
                violation_error_message=_("This hour of the policy is stored already."),
            ),
            models.CheckConstraint(
                condition=Q(agreed__lte=F("asked"), priced__lte=F("asked")),
                name="routing_shadowhour_parts_of_asked",
                violation_error_message=_("No more can agree than were asked."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool} {self.policy} {self.hour:%Y-%m-%dT%H}"
