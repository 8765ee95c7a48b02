"""Engines that should run, the addresses they answer at, and proofs that they did."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from controlplane.serving.models.assignment import Role


class Workload(TimestampedModel):
    """The engine of one accelerator: what is wanted of it and what was seen last.

    The row stays when the role changes; `generation` counts what was wanted, and each process that
    ran leaves an endpoint.
    """

    class Desired(models.TextChoices):
        RUNNING = "running", _("running")
        ABSENT = "absent", _("absent")

    name = models.CharField(_("name"), max_length=120, unique=True)
    pool = models.ForeignKey("serving.Pool", on_delete=models.PROTECT, related_name="workloads")
    assignment = models.ForeignKey(
        "serving.RoleAssignment",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="workloads",
    )
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="workloads")
    accelerator = models.OneToOneField(
        "inventory.Accelerator", on_delete=models.PROTECT, related_name="workload"
    )
    target = models.CharField(_("target"), max_length=32)
    role = models.CharField(_("role"), max_length=16, choices=Role, blank=True)
    desired_state = models.CharField(
        _("desired state"), max_length=16, choices=Desired, default=Desired.ABSENT
    )
    desired = models.JSONField(_("desired"), default=dict, blank=True)
    generation = models.PositiveIntegerField(_("generation"), default=0)
    observed_generation = models.PositiveIntegerField(_("observed generation"), default=0)
    observed = models.JSONField(_("observed"), default=dict, blank=True)
    observed_at = models.DateTimeField(_("observed at"), null=True, blank=True)
    conditions = models.JSONField(_("conditions"), default=list, blank=True)
    refused_generation = models.PositiveIntegerField(_("refused generation"), null=True, blank=True)
    """Generation that the target refused last; null once it took one."""
    refused_at = models.DateTimeField(_("refused at"), null=True, blank=True)
    refusals = models.PositiveIntegerField(_("refusals in a row"), default=0)

    class Meta:
        ordering = ["name", "pk"]
        verbose_name = _("deployment")
        verbose_name_plural = _("deployments")
        constraints = [
            models.CheckConstraint(
                condition=Q(desired_state="absent") | ~Q(role=""),
                name="serving_workload_running_has_a_role",
                violation_error_message=_("An engine that should run has a role."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    """Endpoints by what they can take."""

    def live(self) -> "EndpointQuerySet":
        """Endpoints whose process has not ended, as far as was seen."""
        return self.exclude(state=Endpoint.State.GONE)


class Endpoint(TimestampedModel):
    """One address in one life of its process."""

    class State(models.TextChoices):
        STARTING = "starting", _("starting")
        WARMING = "warming", _("warming")
        READY = "ready", _("ready")
        DRAINING = "draining", _("draining")
        GONE = "gone", _("gone")

    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="endpoints")
    pool = models.ForeignKey("serving.Pool", on_delete=models.PROTECT, related_name="endpoints")
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="endpoints")
    url = models.CharField(_("address"), max_length=300)
    instance = models.CharField(_("instance"), max_length=120)
    role = models.CharField(_("role"), max_length=16, choices=Role)
    engine = models.CharField(_("engine"), max_length=16)
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.STARTING)
    pid = models.PositiveIntegerField(_("process id"), null=True, blank=True)
    kv_contract = models.JSONField(_("KV contract"), default=dict, blank=True)
    block_size_tokens = models.PositiveIntegerField(_("block size (tokens)"), default=16)
    kv_capacity_tokens = models.PositiveBigIntegerField(
        _("KV capacity (tokens)"), null=True, blank=True
    )
    max_model_len = models.PositiveIntegerField(_("longest context"), null=True, blank=True)
    observed_at = models.DateTimeField(_("observed at"), null=True, blank=True)
    ready_at = models.DateTimeField(_("ready since"), null=True, blank=True)
    gone_at = models.DateTimeField(_("gone since"), null=True, blank=True)
    gone_reason = models.CharField(_("why it is gone"), max_length=300, blank=True)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        ordering = ["workload", "-created_at", "pk"]
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "instance"],
                name="serving_endpoint_instance_unique",
                violation_error_message=_("An instance of an engine has one endpoint."),
            ),
            models.UniqueConstraint(
                fields=["workload"],
                condition=~Q(state="gone"),
                name="serving_endpoint_one_live_per_workload",
                violation_error_message=_("An engine has one live endpoint."),
            ),
            models.CheckConstraint(
                condition=Q(state="gone") ^ Q(gone_at__isnull=True),
                name="serving_endpoint_gone_at_iff_gone",
                violation_error_message=_("gone_at is set exactly when the endpoint is gone."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.url} ({self.instance})"


class ProbeRecord(TimestampedModel):
    """A request that the control plane sent itself, so that its tokens can be told apart."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="probes")
    purpose = models.CharField(_("purpose"), max_length=32)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"))
    cached_tokens = models.PositiveIntegerField(_("cached tokens"), null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"))
    at = models.DateTimeField(_("at"))

    class Meta:
        ordering = ["-at", "pk"]
        verbose_name = _("probe")
        verbose_name_plural = _("probes")

    def __str__(self) -> str:
        return f"{self.purpose} at {self.at}"
