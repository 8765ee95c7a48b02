"""How the look at a whole cluster goes: when it was listed, what is followed, what was found."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Discovery(TimestampedModel):
    """The discovery of one cluster: one row, changed by whoever holds its lease."""

    cluster = models.OneToOneField(
        "inventory.Cluster", on_delete=models.PROTECT, related_name="discovery"
    )
    listed_at = models.DateTimeField(_("listed at"), null=True, blank=True)
    """When all nodes were last read."""
    followed_at = models.DateTimeField(_("followed at"), null=True, blank=True)
    """Until when changes since then were heard."""
    places = models.JSONField(_("places of the watches"), default=dict, blank=True)
    """Kind to resourceVersion, from which the next watch goes on; empty: list first."""
    digests = models.JSONField(_("digests of the nodes"), default=dict, blank=True)
    """Hostname to what of the Node object matters, so that heartbeats are told from changes."""
    nodes = models.PositiveIntegerField(_("nodes"), null=True, blank=True)
    accelerators = models.PositiveIntegerField(_("accelerators"), null=True, blank=True)
    """Sum of what the nodes' best sources count; those that count nothing add nothing."""
    unknown_nodes = models.PositiveIntegerField(_("nodes nobody planned"), null=True, blank=True)
    seconds = models.FloatField(_("seconds of the last listing"), null=True, blank=True)
    without_slices = models.CharField(_("why without slices"), max_length=300, blank=True)
    """Why ResourceSlices were not read; empty if they were."""
    error = models.CharField(_("last error"), max_length=500, blank=True)
    failed_at = models.DateTimeField(_("failed at"), null=True, blank=True)
    adoptable = models.JSONField(_("adoptable"), default=list, blank=True)
    """Engines that run there already, as `inventory.discovery.adoptable` describes them."""

    class Meta:
        ordering = ["cluster", "pk"]
        verbose_name_plural = _("discoveries")

    def __str__(self) -> str:
        return str(self.cluster)
