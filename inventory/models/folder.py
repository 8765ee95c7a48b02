"""Folders of files on nodes, as agents counted them."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class NodeFolder(TimestampedModel):
    """What a node's agent said last of a folder; `error` where it could not be counted."""

    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="folders")
    path = models.CharField(_("path"), max_length=500)
    size_bytes = models.BigIntegerField(_("size"), null=True, blank=True)
    files = models.PositiveIntegerField(_("files"), null=True, blank=True)
    sha256 = models.CharField(_("SHA-256"), max_length=64, blank=True)
    read_bytes_per_second = models.BigIntegerField(_("reading speed"), null=True, blank=True)
    """Of reading and counting, so the storage is at least as fast."""
    error = models.CharField(_("error"), max_length=500, blank=True)
    seen_at = models.DateTimeField(_("seen at"))

    class Meta:
        ordering = ["node", "path", "pk"]
        verbose_name = _("folder of a node")
        verbose_name_plural = _("folders of nodes")
        constraints = [
            models.UniqueConstraint(
                fields=["node", "path"],
                name="inventory_nodefolder_once",
                violation_error_message=_("A node has a folder once."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.path}"
