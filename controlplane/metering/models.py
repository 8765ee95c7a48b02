"""Usage events in, hours of usage out, and the reconciliation with the engines' counters.

Tenant, project, key, pool, node, role, model and policy are the names that stood in the event: they
were fixed when the key was issued, and a later rename does not move usage.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from controlplane.telemetry.models import Evidence


class RouterProgress(TimestampedModel):
    """How far one router's spool has been read, and up to when it is complete."""

    router = models.CharField(max_length=200, unique=True)
    last_sequence = models.BigIntegerField(default=0)
    """All events up to here were read; `missing_events` of them never arrived."""
    missing_events = models.BigIntegerField(default=0)
    complete_until = models.DateTimeField(null=True, blank=True)
    """The router says that everything that ended before is in segments we have."""
    pulled_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)
    lost_at = models.DateTimeField(null=True, blank=True)
    lost_reason = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["router", "pk"]

    def __str__(self) -> str:
        return self.router


class UsageSegment(TimestampedModel):
    """A run of events that was ingested; a segment counts once."""

    router = models.CharField(max_length=200)
    first_sequence = models.BigIntegerField()
    last_sequence = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    events = models.PositiveIntegerField()
    """Events that this segment added; fewer than its length if it overlapped an earlier one."""
    ingested_at = models.DateTimeField()

    class Meta:
        ordering = ["router", "first_sequence", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["router", "first_sequence", "last_sequence"],
                name="metering_usagesegment_range_unique",
                violation_error_message=_("This range of the router is ingested already."),
            ),
            models.CheckConstraint(
                condition=Q(first_sequence__gte=1, last_sequence__gte=F("first_sequence")),
                name="metering_usagesegment_range_is_ordered",
                violation_error_message=_("A range starts at 1 or later and does not end before."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router} {self.first_sequence}-{self.last_sequence}"


class SegmentRefusal(TimestampedModel):
    """A segment that could not be taken: it contradicts what is stored, or it is damaged."""

    class Reason(models.TextChoices):
        CHECKSUM = "checksum", _("checksum does not match the events")
        CONFLICT = "conflict", _("an event differs from the stored one of the same sequence")
        MALFORMED = "malformed", _("sequence numbers do not match the range")

    router = models.CharField(max_length=200)
    first_sequence = models.BigIntegerField()
    last_sequence = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    reason = models.CharField(max_length=16, choices=Reason)
    detail = models.CharField(max_length=300)
    seen_at = models.DateTimeField()
    times_seen = models.PositiveIntegerField(default=1)

    KEY = ["router", "first_sequence", "last_sequence", "sha256", "reason"]

    class Meta:
        ordering = ["-seen_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["router", "first_sequence", "last_sequence", "sha256", "reason"],
                name="metering_segmentrefusal_segment_unique",
                violation_error_message=_("This refusal is recorded already."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router} {self.first_sequence}-{self.last_sequence}: {self.reason}"


class UsageEventRow(models.Model):
    """One attempt of one request as the router wrote it; never changed."""

    id = models.BigAutoField(primary_key=True)
    router = models.CharField(max_length=200)
    sequence = models.BigIntegerField()
    sha256 = models.BinaryField(max_length=32)
    request_id = models.CharField(max_length=200)
    hour = models.DateTimeField()
    """The hour in which the attempt ended."""
    pool = models.CharField(max_length=200)
    document_version = models.BigIntegerField()
    policy = models.CharField(max_length=64)
    tenant = models.CharField(max_length=200)
    project = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    model = models.CharField(max_length=200)
    asked_model = models.CharField(max_length=200, blank=True)
    """Name that the caller used, where a rule rewrote it; "" is the model's own."""
    endpoint = models.CharField(max_length=200, blank=True)
    instance = models.CharField(max_length=200, blank=True)
    node = models.CharField(max_length=253, blank=True)
    role = models.CharField(max_length=16, blank=True)
    prefill_endpoint = models.CharField(max_length=200, blank=True)
    received_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    outcome = models.CharField(max_length=16)
    status = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField()
    delivered = models.BooleanField()
    stream = models.BooleanField()
    counted_by = models.CharField(max_length=32)
    """Who counted the tokens: engine, counted_by_router or none."""
    input_uncached = models.BigIntegerField(null=True, blank=True)
    cache_read = models.BigIntegerField(null=True, blank=True)
    cache_write = models.BigIntegerField(null=True, blank=True)
    output = models.BigIntegerField(null=True, blank=True)
    reasoning = models.BigIntegerField(null=True, blank=True)
    ttft_seconds = models.FloatField(null=True, blank=True)
    tpot_seconds = models.FloatField(null=True, blank=True)
    ttft_bucket = models.IntegerField(null=True, blank=True)
    """Index into the digest of `metering.digest`, so that hours are summed by the database."""
    tpot_bucket = models.IntegerField(null=True, blank=True)

    class Meta:
        ordering = ["router", "sequence", "pk"]
        indexes = [
            models.Index(fields=["pool", "hour"], name="metering_event_pool_hour"),
            models.Index(fields=["project", "ended_at"], name="metering_event_project_ended"),
            models.Index(fields=["ended_at"], name="metering_event_ended"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["router", "sequence"],
                name="metering_usageeventrow_sequence_unique",
                violation_error_message=_("This event is stored already."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router} {self.sequence}"


class StaleHour(models.Model):
    """An hour of a pool whose sums are older than its events; the next recomputation removes it."""

    id = models.BigAutoField(primary_key=True)
    pool = models.CharField(max_length=200)
    hour = models.DateTimeField()

    class Meta:
        ordering = ["hour", "pool", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "hour"],
                name="metering_stalehour_once",
                violation_error_message=_("This hour is marked already."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool} {self.hour}"


class UsageHour(TimestampedModel):
    """Usage of one key on one node in one hour: five disjoint token buckets, requests, latency.

    Buckets count attempts whose answer the client got. `waste_*` count attempts that were retried
    elsewhere; `waste_*` and buckets together are what the router saw.
    """

    hour = models.DateTimeField()
    tenant = models.CharField(max_length=200)
    project = models.CharField(max_length=200)
    key = models.CharField(max_length=200)
    pool = models.CharField(max_length=200)
    node = models.CharField(max_length=253, blank=True)
    role = models.CharField(max_length=16, blank=True)
    model = models.CharField(max_length=200)
    policy = models.CharField(max_length=64)
    source = models.CharField(max_length=16, choices=Evidence)
    requests = models.BigIntegerField()
    requests_ok = models.BigIntegerField()
    requests_failed = models.BigIntegerField()
    requests_aborted = models.BigIntegerField()
    requests_refused = models.BigIntegerField()
    attempts_retried = models.BigIntegerField()
    input_uncached = models.BigIntegerField()
    cache_read = models.BigIntegerField()
    cache_write = models.BigIntegerField()
    output = models.BigIntegerField()
    reasoning = models.BigIntegerField()
    waste_input_uncached = models.BigIntegerField()
    waste_cache_read = models.BigIntegerField()
    waste_output = models.BigIntegerField()
    counted_by_router = models.BigIntegerField()
    """Attempts whose tokens the router counted, because the engine gave no usage."""
    uncounted = models.BigIntegerField()
    """Attempts that reached an engine and whose tokens nobody counted."""
    ttft_digest = models.JSONField(default=dict)
    tpot_digest = models.JSONField(default=dict)
    first_request_at = models.DateTimeField()
    last_response_at = models.DateTimeField()

    KEY = ["hour", "tenant", "project", "key", "pool", "node", "role", "model", "policy", "source"]
    BUCKETS = ["input_uncached", "cache_read", "cache_write", "output", "reasoning"]
    COUNTS = [
        "requests", "requests_ok", "requests_failed", "requests_aborted", "requests_refused",
        "attempts_retried", "counted_by_router", "uncounted",
    ]  # fmt: skip
    WASTE = ["waste_input_uncached", "waste_cache_read", "waste_output"]

    class Meta:
        ordering = ["-hour", "tenant", "project", "pk"]
        indexes = [models.Index(fields=["pool", "hour"], name="metering_usagehour_pool")]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "hour",
                    "tenant",
                    "project",
                    "key",
                    "pool",
                    "node",
                    "role",
                    "model",
                    "policy",
                    "source",
                ],
                name="metering_usagehour_key_unique",
                violation_error_message=_("This hour of usage is stored already."),
            ),
            models.CheckConstraint(
                condition=Q(
                    input_uncached__gte=0,
                    cache_read__gte=0,
                    cache_write__gte=0,
                    output__gte=0,
                    reasoning__gte=0,
                ),
                name="metering_usagehour_buckets_not_negative",
                violation_error_message=_("A token bucket is never negative."),
            ),
            models.CheckConstraint(
                condition=Q(
                    requests=F("requests_ok")
                    + F("requests_failed")
                    + F("requests_aborted")
                    + F("requests_refused")
                ),
                name="metering_usagehour_outcomes_sum_up",
                violation_error_message=_("Every request has exactly one outcome."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project} {self.pool} {self.hour:%Y-%m-%dT%H}"


class Reconciliation(TimestampedModel):
    """Tokens of one pool in one hour as the routers and as the engines counted them."""

    hour = models.DateTimeField()
    pool = models.CharField(max_length=200)
    gateway_tokens = models.BigIntegerField()
    engine_tokens = models.BigIntegerField(null=True, blank=True)
    """Prompt and generation counters of engines that answer clients; None is not reconciled."""
    probe_tokens = models.BigIntegerField()
    """Tokens that no client asked for: the control plane's probes and routers' first prompts."""
    unattributed_tokens = models.BigIntegerField(null=True, blank=True)
    """Engine less probes less gateway; negative when the engines counted less than the routers."""
    source = models.CharField(max_length=16, choices=Evidence)

    KEY = ["pool", "hour"]

    class Meta:
        ordering = ["-hour", "pool", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "hour"],
                name="metering_reconciliation_hour_unique",
                violation_error_message=_("This hour of the pool is reconciled already."),
            ),
            models.CheckConstraint(
                condition=Q(engine_tokens__isnull=True, unattributed_tokens__isnull=True)
                | Q(
                    unattributed_tokens=F("engine_tokens") - F("probe_tokens") - F("gateway_tokens")
                ),
                name="metering_reconciliation_difference_is_exact",
                violation_error_message=_("Unattributed is engine less probes less gateway."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool} {self.hour:%Y-%m-%dT%H}"
