"""What a discovery saw, where that differs from what was meant, and what a file brought in."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Observation(TimestampedModel):
    """One look at one node. Rows stay as they came for 30 days and are never edited."""

    class Source(models.TextChoices):
        AGENT = "agent", _("node agent")
        FILE = "file", _("file import")
        KUBERNETES = "kubernetes", _("Kubernetes")

    cluster = models.ForeignKey(
        "inventory.Cluster", on_delete=models.PROTECT, related_name="observations"
    )
    node = models.ForeignKey(
        "inventory.Node",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="observations",
    )
    """None if no live node of the cluster has the hostname."""
    hostname = models.CharField(_("hostname"), max_length=253)
    vendor = models.SlugField(_("vendor"), max_length=50)
    source = models.CharField(_("source"), max_length=16, choices=Source)
    seen_at = models.DateTimeField(_("seen at"))
    content = models.JSONField(_("content"))
    """The report: {"accelerators": [{"slot", "serial", "name", ...}], "tool": text}.

    Of a cluster also "count", "usable", "model", "memory_mib", "state", "facts" and "doubts".
    """
    digest = models.CharField(_("digest"), max_length=16, blank=True)
    """Of the content without its time; a cluster's look that says the same makes no row."""

    class Meta:
        ordering = ["-seen_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "hostname", "source", "seen_at"],
                name="inventory_observation_unique",
                violation_error_message=_("This observation was recorded before."),
            ),
        ]
        indexes = [models.Index(fields=["node", "-seen_at"], name="inventory_observation_of_node")]

    def __str__(self) -> str:
        return f"{self.hostname} {self.seen_at:%Y-%m-%d %H:%M:%S}"


class Finding(TimestampedModel):
    """Intended differs from observed; closed by a person, or by a later observation."""

    class Kind(models.TextChoices):
        UNKNOWN_NODE = "unknown-node", _("a node that nobody planned")
        VENDOR_DIFFERS = "vendor-differs", _("another vendor")
        MODEL_DIFFERS = "model-differs", _("another model")
        SERIAL_DIFFERS = "serial-differs", _("another device in the slot")
        SERIAL_KNOWN = "serial-known", _("a serial nobody had written down")
        MOVED = "moved", _("a device that moved")
        MISSING = "missing", _("a device that is missing")
        EXTRA = "extra", _("a device that nobody planned")
        NOTHING_FOUND = "nothing-found", _("the cluster names no accelerator of the node")
        FEWER_DEVICES = "fewer-devices", _("fewer devices than planned")
        MORE_DEVICES = "more-devices", _("more devices than planned")
        NOT_USABLE = "not-usable", _("devices that the cluster does not give out")
        NODE_GONE = "node-gone", _("a node that is not in the cluster")
        NODE_NOT_READY = "node-not-ready", _("a node that is not ready in the cluster")
        CORDONED_IN_CLUSTER = "cordoned-in-cluster", _("a node that is cordoned in the cluster")
        TAINTED = "tainted", _("taints that keep engines away")
        SOURCES_DISAGREE = "sources-disagree", _("sources of the cluster that disagree")
        FOREIGN_DRIVER = "foreign-driver", _("a driver of another vendor")
        OTHER_SERIALS = "other-serials", _("serials of another kind than the agent's")
        PARTITIONED = "partitioned", _("devices cut into partitions")
        SHARED = "shared", _("devices given out in shares")
        UNREADABLE = "unreadable", _("something that cannot be read")

    class State(models.TextChoices):
        OPEN = "open", _("open")
        ACCEPTED = "accepted", _("accepted")
        OVERRIDDEN = "overridden", _("overridden")
        DISMISSED = "dismissed", _("dismissed")
        RESOLVED = "resolved", _("resolved")

    cluster = models.ForeignKey(
        "inventory.Cluster", on_delete=models.PROTECT, related_name="findings"
    )
    node = models.ForeignKey(
        "inventory.Node", on_delete=models.PROTECT, null=True, blank=True, related_name="findings"
    )
    observation = models.ForeignKey(Observation, on_delete=models.PROTECT, related_name="findings")
    hostname = models.CharField(_("hostname"), max_length=253)
    slot = models.IntegerField(_("slot"), default=-1)
    """Slot the difference is about; -1 if it is about the node."""
    kind = models.CharField(_("kind"), max_length=32, choices=Kind)
    intended = models.CharField(_("intended"), max_length=200, blank=True)
    observed = models.CharField(_("observed"), max_length=200, blank=True)
    suggestion = models.JSONField(_("suggestion"), default=dict)
    """What accepting does: {"do": verb, ...arguments}."""
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.OPEN)
    seen_at = models.DateTimeField(_("seen at"))
    closed_at = models.DateTimeField(_("closed at"), null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.CharField(_("reason"), max_length=200, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "hostname", "slot", "kind"],
                condition=Q(state="open"),
                name="inventory_finding_open_unique",
                violation_error_message=_("This difference has an open finding."),
            ),
            models.CheckConstraint(
                condition=Q(state="open") ^ Q(closed_at__isnull=False),
                name="inventory_finding_closed_at_iff_closed",
                violation_error_message=_("closed_at is set exactly when the finding is closed."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.hostname} {self.kind}"


class ImportRun(TimestampedModel):
    """One file that was read: a dry run, or applied whole. A refused file changes nothing."""

    class State(models.TextChoices):
        CHECKED = "checked", _("checked")
        APPLIED = "applied", _("applied")
        REFUSED = "refused", _("refused")

    file_name = models.CharField(_("file"), max_length=200, blank=True)
    sha256 = models.CharField(_("SHA-256"), max_length=64)
    state = models.CharField(_("state"), max_length=16, choices=State)
    dry_run = models.BooleanField(_("dry run"))
    rows = models.PositiveIntegerField(_("rows"))
    created = models.JSONField(_("created"), default=dict)
    """Numbers of what the file makes: {"sites": 1, "nodes": 4, ...}."""
    errors = models.JSONField(_("errors"), default=list)
    """[{"row", "column", "code", "detail"}], the first thousand."""
    error_count = models.PositiveIntegerField(_("error count"), default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        ordering = ["-created_at", "pk"]

    def __str__(self) -> str:
        return f"{self.file_name or self.sha256[:12]}: {self.state}"
