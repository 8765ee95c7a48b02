"""Scrape targets, samples of engines, and hourly roll-ups with their coverage."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Evidence(models.TextChoices):
    """How a figure came to be; four words that are never swapped."""

    MEASURED = "measured", _("measured")
    MODELLED = "modelled", _("modelled")
    SIMULATED = "simulated", _("simulated")
    CLAIMED = "claimed", _("claimed")


class ScrapeTarget(TimestampedModel):
    """One page of metrics to read: an engine in one life of its process, or a vendor's exporter.

    `serving` writes engines' rows through `services.register_engine`, so that roll-ups know pool
    and role without asking a higher app.
    """

    class Kind(models.TextChoices):
        ENGINE = "engine", _("engine")
        EXPORTER = "exporter", _("exporter")

    kind = models.CharField(max_length=16, choices=Kind, default=Kind.ENGINE)
    url = models.CharField(max_length=300)
    """Address of the metrics page in full, for example http://127.0.0.1:9000/metrics."""
    engine = models.CharField(max_length=32, blank=True)
    """Slug of the engine plugin that reads the page, for example vllm; empty for an exporter."""
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="+")
    accelerators = models.ManyToManyField("inventory.Accelerator", related_name="+", blank=True)
    pool = models.CharField(max_length=200, blank=True)
    role = models.CharField(max_length=16, blank=True)
    endpoint = models.CharField(max_length=200, blank=True)
    instance = models.CharField(max_length=200, blank=True)
    """The endpoint in one life of its process; a restart is another target."""
    source = models.CharField(max_length=16, choices=Evidence, default=Evidence.MEASURED)
    counts_from_start = models.BooleanField(default=True)
    """True if everything the process ever counted is ours; false for engines that ran before."""
    active = models.BooleanField(default=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    last_ok_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["node", "endpoint", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "instance"],
                condition=Q(kind="engine"),
                name="telemetry_scrapetarget_instance_unique",
                violation_error_message=_("This instance of the endpoint is scraped already."),
            ),
            models.CheckConstraint(
                condition=Q(active=True) ^ Q(ended_at__isnull=False),
                name="telemetry_scrapetarget_ended_at_iff_inactive",
                violation_error_message=_("ended_at is set exactly when the target has ended."),
            ),
            models.CheckConstraint(
                condition=Q(kind="exporter") | (~Q(engine="") & ~Q(instance="")),
                name="telemetry_scrapetarget_engine_is_named",
                violation_error_message=_("A target of an engine names the engine and instance."),
            ),
        ]

    def __str__(self) -> str:
        return self.instance or self.url


class EngineCounter(TimestampedModel):
    """What one instance has counted so far, over resets of its counters."""

    target = models.OneToOneField(ScrapeTarget, on_delete=models.CASCADE, related_name="counter")
    at = models.DateTimeField()
    process_start = models.FloatField(null=True, blank=True)
    raw = models.JSONField(default=dict)
    """Values of the last page by counter name; the next sample is compared with them."""
    resets = models.PositiveIntegerField(default=0)
    prompt_tokens_total = models.BigIntegerField(null=True, blank=True)
    prompt_tokens_by_source = models.JSONField(default=dict)
    generation_tokens_total = models.BigIntegerField(null=True, blank=True)
    prefix_queries_total = models.BigIntegerField(null=True, blank=True)
    prefix_hits_total = models.BigIntegerField(null=True, blank=True)
    running = models.IntegerField(null=True, blank=True)
    waiting = models.IntegerField(null=True, blank=True)
    kv_usage = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["target", "pk"]

    def __str__(self) -> str:
        return f"counters of {self.target_id}"


class EngineSample(models.Model):
    """One reading of one instance: gauges, and what its counters grew by since the one before."""

    id = models.BigAutoField(primary_key=True)
    target = models.ForeignKey(ScrapeTarget, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    seconds = models.FloatField()
    """Time that this sample stands for, at most two scrape intervals."""
    running = models.IntegerField(null=True, blank=True)
    waiting = models.IntegerField(null=True, blank=True)
    kv_usage = models.FloatField(null=True, blank=True)
    prompt_tokens = models.BigIntegerField(null=True, blank=True)
    prompt_computed_tokens = models.BigIntegerField(null=True, blank=True)
    prompt_cached_tokens = models.BigIntegerField(null=True, blank=True)
    prompt_transferred_tokens = models.BigIntegerField(null=True, blank=True)
    generation_tokens = models.BigIntegerField(null=True, blank=True)
    prefix_queries = models.BigIntegerField(null=True, blank=True)
    prefix_hits = models.BigIntegerField(null=True, blank=True)
    prefill_seconds = models.FloatField(null=True, blank=True)
    decode_seconds = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["target", "at", "pk"]
        indexes = [models.Index(fields=["at"], name="telemetry_sample_at")]
        constraints = [
            models.UniqueConstraint(
                fields=["target", "at"],
                name="telemetry_enginesample_moment_unique",
                violation_error_message=_("There is a sample of this moment already."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target_id} at {self.at}"


class EngineHour(TimestampedModel):
    """What one instance did in one hour, recomputed from its samples."""

    endpoint = models.CharField(max_length=200)
    instance = models.CharField(max_length=200)
    pool = models.CharField(max_length=200)
    role = models.CharField(max_length=16)
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="+")
    accelerator_count = models.PositiveIntegerField()
    hour = models.DateTimeField()
    samples = models.PositiveIntegerField()
    expected_samples = models.PositiveIntegerField()
    busy_seconds = models.FloatField(null=True, blank=True)
    """Time with at least one running request, judged by the samples."""
    observed_seconds = models.FloatField()
    running_average = models.FloatField(null=True, blank=True)
    waiting_average = models.FloatField(null=True, blank=True)
    kv_usage_average = models.FloatField(null=True, blank=True)
    prompt_tokens = models.BigIntegerField(null=True, blank=True)
    prompt_computed_tokens = models.BigIntegerField(null=True, blank=True)
    prompt_cached_tokens = models.BigIntegerField(null=True, blank=True)
    prompt_transferred_tokens = models.BigIntegerField(null=True, blank=True)
    generation_tokens = models.BigIntegerField(null=True, blank=True)
    prefix_queries = models.BigIntegerField(null=True, blank=True)
    prefix_hits = models.BigIntegerField(null=True, blank=True)
    prefill_seconds = models.FloatField(null=True, blank=True)
    decode_seconds = models.FloatField(null=True, blank=True)
    source = models.CharField(max_length=16, choices=Evidence)

    KEY = ["instance", "hour"]

    class Meta:
        ordering = ["-hour", "instance", "pk"]
        indexes = [models.Index(fields=["pool", "hour"], name="telemetry_enginehour_pool")]
        constraints = [
            models.UniqueConstraint(
                fields=["instance", "hour"],
                name="telemetry_enginehour_hour_unique",
                violation_error_message=_("This hour of the instance is stored already."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.instance} {self.hour:%Y-%m-%dT%H}"


class UtilisationHour(TimestampedModel):
    """How busy one accelerator was in one hour; coverage says how much of the hour is known."""

    accelerator = models.ForeignKey(
        "inventory.Accelerator", on_delete=models.PROTECT, related_name="+"
    )
    hour = models.DateTimeField()
    utilisation = models.FloatField(null=True, blank=True)
    """Share of the observed time with work on the accelerator, 0 to 1; None is no data."""
    memory_usage = models.FloatField(null=True, blank=True)
    """Share of the memory for KV in use, 0 to 1."""
    power_watts = models.FloatField(null=True, blank=True)
    output_tokens_per_second = models.FloatField(null=True, blank=True)
    """Output while busy: the figure that tells a slow accelerator from its sisters."""
    samples = models.PositiveIntegerField()
    expected_samples = models.PositiveIntegerField()
    role = models.CharField(max_length=16, blank=True)
    pool = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=16, choices=Evidence)
    not_scraped_since = models.DateTimeField(null=True, blank=True)

    KEY = ["accelerator", "hour"]

    class Meta:
        ordering = ["-hour", "accelerator", "pk"]
        indexes = [models.Index(fields=["hour"], name="telemetry_utilisation_hour")]
        constraints = [
            models.UniqueConstraint(
                fields=["accelerator", "hour"],
                name="telemetry_utilisationhour_hour_unique",
                violation_error_message=_("This hour of the accelerator is stored already."),
            ),
            models.CheckConstraint(
                condition=Q(utilisation__isnull=True) | Q(utilisation__gte=0, utilisation__lte=1),
                name="telemetry_utilisationhour_is_a_share",
                violation_error_message=_("Utilisation is a share from 0 to 1."),
            ),
            models.CheckConstraint(
                condition=Q(samples__gt=0) | Q(utilisation__isnull=True),
                name="telemetry_utilisationhour_value_has_samples",
                violation_error_message=_("Without samples there is no utilisation, not even 0."),
            ),
            models.CheckConstraint(
                condition=Q(samples__lte=F("expected_samples")),
                name="telemetry_utilisationhour_coverage_is_a_share",
                violation_error_message=_("More samples than the schedule has."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.accelerator_id} {self.hour:%Y-%m-%dT%H}"

    @property
    def coverage(self) -> float | None:
        """Share of the expected samples that are there; None if none were expected."""
        return self.samples / self.expected_samples if self.expected_samples else None


class Alert(TimestampedModel):
    """Something that figures say and a person should look at; resolved when they stop saying it."""

    class Kind(models.TextChoices):
        SLOWER_THAN_CLASS = "slower_than_class", _("slower than its class")
        EXPORTER_SILENT = "exporter_silent", _("exporter has gone silent")

    kind = models.CharField(max_length=32, choices=Kind)
    fingerprint = models.CharField(max_length=64)
    """Kind and subject, so that the same fact does not open twice."""
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="alerts")
    accelerator = models.ForeignKey(
        "inventory.Accelerator",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="alerts",
    )
    since = models.DateTimeField()
    """When the fact began, which may be before anybody looked."""
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    facts = models.JSONField(default=dict)
    """Numbers behind the alert, for example {"value": 310.0, "class_median": 930.0}."""
    source = models.CharField(max_length=16, choices=Evidence)

    class Meta:
        ordering = ["-opened_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint"],
                condition=Q(resolved_at__isnull=True),
                name="telemetry_alert_open_once",
                violation_error_message=_("This alert is open already."),
            ),
        ]

    def __str__(self) -> str:
        return self.fingerprint
