"""Machines and the accelerators in their slots."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from inventory.models.constraints import SameVendorConstraint
from inventory.models.words import Health, HealthReason


class Node(TimestampedModel):
    """A machine with accelerators of one vendor.

    Retired, it keeps its row for the ledger and frees its name. `state` is what people decided,
    `health` is what was observed.
    """

    class State(models.TextChoices):
        PLANNED = "planned", _("planned")
        PROVISIONING = "provisioning", _("provisioning")
        READY = "ready", _("ready")
        CORDONED = "cordoned", _("cordoned")
        DRAINING = "draining", _("draining")
        MAINTENANCE = "maintenance", _("maintenance")
        RETIRED = "retired", _("retired")

    NOT_DELIVERED = (State.PLANNED, State.PROVISIONING, State.RETIRED)
    """States in which a node does not count as delivered."""

    cluster = models.ForeignKey("inventory.Cluster", on_delete=models.PROTECT, related_name="nodes")
    node_type = models.ForeignKey(
        "inventory.NodeType", on_delete=models.PROTECT, related_name="nodes"
    )
    hostname = models.CharField(_("hostname"), max_length=253)
    vendor = models.SlugField(_("vendor"), max_length=50)
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.READY)
    state_since = models.DateTimeField(_("state since"), default=timezone.now)
    retired_at = models.DateTimeField(_("retired at"), null=True, blank=True)
    delivered_at = models.DateTimeField(_("delivered at"), null=True, blank=True)
    health = models.CharField(_("health"), max_length=16, choices=Health, default=Health.UNKNOWN)
    health_reason = models.CharField(
        _("reason of the health"),
        max_length=32,
        choices=HealthReason,
        default=HealthReason.NEVER_OBSERVED,
        blank=True,
    )
    health_since = models.DateTimeField(_("health since"), default=timezone.now)
    observed_at = models.DateTimeField(_("observed at"), null=True, blank=True)
    agent_seen_at = models.DateTimeField(_("seen by the agent at"), null=True, blank=True)
    """A report on its devices one by one; while it is fresh, a cluster sets no device's health."""
    cluster_seen_at = models.DateTimeField(_("seen by the cluster at"), null=True, blank=True)
    cluster_health = models.CharField(
        _("health as the cluster says"), max_length=16, choices=Health, blank=True
    )
    """Empty as long as no cluster spoke of the node; `health` is the worse of the two views."""
    cluster_reason = models.CharField(
        _("reason of what the cluster says"), max_length=32, choices=HealthReason, blank=True
    )
    storage_bytes_per_second = models.BigIntegerField(_("storage (bytes/s)"), null=True, blank=True)
    """How fast models are read, as somebody entered it; None: nobody did."""
    rack = models.CharField(_("rack"), max_length=50, blank=True)
    owner = models.CharField(_("owner"), max_length=100, blank=True)
    operator = models.CharField(_("operator"), max_length=100, blank=True)
    tags = ArrayField(
        models.CharField(max_length=50), verbose_name=_("tags"), default=list, blank=True
    )

    class Meta:
        ordering = ["hostname", "pk"]
        constraints = [
            models.UniqueConstraint(
                "cluster",
                Lower("hostname"),
                condition=~Q(state="retired"),
                name="inventory_node_live_hostname_unique",
                violation_error_message=_("A live node with this hostname exists in the cluster."),
            ),
            models.UniqueConstraint(
                fields=["id", "vendor"], name="inventory_node_id_vendor_unique"
            ),
            models.CheckConstraint(
                condition=Q(storage_bytes_per_second__isnull=True)
                | Q(storage_bytes_per_second__gt=0),
                name="inventory_node_storage_positive",
                violation_error_message=_("The speed of the storage is above 0, or left out."),
            ),
            models.CheckConstraint(
                condition=Q(state="retired") ^ Q(retired_at__isnull=True),
                name="inventory_node_retired_at_iff_retired",
                violation_error_message=_("retired_at is set exactly when the node is retired."),
            ),
            models.CheckConstraint(
                condition=~Q(health="unknown") | ~Q(health_reason=""),
                name="inventory_node_unknown_has_reason",
                violation_error_message=_("Unknown health has a reason."),
            ),
            models.CheckConstraint(
                condition=Q(health="unknown") | Q(observed_at__isnull=False),
                name="inventory_node_health_was_observed",
                violation_error_message=_("Health that nobody observed is unknown."),
            ),
        ]
        indexes = [models.Index(fields=["state", "observed_at"], name="inventory_node_staleness")]

    def __str__(self) -> str:
        return self.hostname

    @property
    def is_delivered(self) -> bool:
        """True if the node was handed over and is not retired."""
        return self.state not in self.NOT_DELIVERED


class Accelerator(TimestampedModel):
    """A physical device in a slot; a replaced one is another row in the same slot.

    What was meant: slot, serial, model, state. What was seen last: the `observed_` columns, which
    are None as long as no observation named a figure.
    """

    class State(models.TextChoices):
        READY = "ready", _("ready")
        CORDONED = "cordoned", _("cordoned")
        RETIRED = "retired", _("retired")

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="accelerators")
    model = models.ForeignKey(
        "inventory.AcceleratorModel", on_delete=models.PROTECT, related_name="accelerators"
    )
    vendor = models.SlugField(_("vendor"), max_length=50)
    slot = models.PositiveSmallIntegerField(_("slot"))
    serial = models.CharField(_("serial"), max_length=128, blank=True)
    """As the vendor's tool prints it (serial or UUID); empty as long as nobody knows it."""
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.READY)
    retired_at = models.DateTimeField(_("retired at"), null=True, blank=True)
    health = models.CharField(_("health"), max_length=16, choices=Health, default=Health.UNKNOWN)
    health_reason = models.CharField(
        _("reason of the health"),
        max_length=32,
        choices=HealthReason,
        default=HealthReason.NEVER_OBSERVED,
        blank=True,
    )
    health_since = models.DateTimeField(_("health since"), default=timezone.now)
    observed_at = models.DateTimeField(_("observed at"), null=True, blank=True)
    observed_name = models.CharField(_("observed model"), max_length=100, blank=True)
    observed_memory_total_mib = models.PositiveIntegerField(null=True, blank=True)
    observed_memory_used_mib = models.PositiveIntegerField(null=True, blank=True)
    observed_utilisation = models.FloatField(null=True, blank=True)
    """Share of time the device was busy, 0 to 1."""
    observed_power_watts = models.FloatField(null=True, blank=True)
    observed_temperature_celsius = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["node", "slot", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "slot"],
                condition=~Q(state="retired"),
                name="inventory_accelerator_live_slot_unique",
                violation_error_message=_("The slot holds another live accelerator."),
            ),
            models.UniqueConstraint(
                fields=["vendor", "serial"],
                condition=~Q(state="retired") & ~Q(serial=""),
                name="inventory_accelerator_live_serial_unique",
                violation_error_message=_("A live accelerator of this vendor has this serial."),
            ),
            models.CheckConstraint(
                condition=Q(state="retired") ^ Q(retired_at__isnull=True),
                name="inventory_accelerator_retired_at_iff_retired",
                violation_error_message=_(
                    "retired_at is set exactly when the accelerator is retired."
                ),
            ),
            models.CheckConstraint(
                condition=~Q(health="unknown") | ~Q(health_reason=""),
                name="inventory_accelerator_unknown_has_reason",
                violation_error_message=_("Unknown health has a reason."),
            ),
            models.CheckConstraint(
                condition=Q(observed_utilisation__isnull=True)
                | (Q(observed_utilisation__gte=0) & Q(observed_utilisation__lte=1)),
                name="inventory_accelerator_utilisation_is_a_share",
                violation_error_message=_("Utilisation is a share from 0 to 1."),
            ),
            SameVendorConstraint(
                field="node",
                name="inventory_accelerator_vendor_of_node",
                violation_error_message=_("A node holds accelerators of one vendor only."),
            ),
            SameVendorConstraint(
                field="model",
                name="inventory_accelerator_vendor_of_model",
                violation_error_message=_("The accelerator model is of another vendor."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node.hostname}/{self.slot}"
