"""Types of accelerators and of nodes. Every figure has a source and a confidence."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel
from inventory.models.words import slug_field


class AcceleratorModel(TimestampedModel):
    """A type of device. A figure nobody published is None, never 0.

    `figures` maps each figure's name to {"value", "source", "confidence", "note"}; the columns
    repeat the values so that queries can use them.
    """

    slug = slug_field()
    vendor = models.SlugField(_("vendor"), max_length=50)
    """Slug of a vendor file (`inventory/vendors/`), with hyphens: `intel-gaudi`."""
    name = models.CharField(_("name"), max_length=100)
    memory_bytes = models.BigIntegerField(_("memory"), null=True, blank=True)
    bandwidth_bytes_per_second = models.BigIntegerField(_("bandwidth"), null=True, blank=True)
    bf16_tflops = models.FloatField(_("dense BF16 TFLOPS"), null=True, blank=True)
    fp8_tflops = models.FloatField(_("dense FP8 TFLOPS"), null=True, blank=True)
    tdp_watts = models.FloatField(_("power limit (W)"), null=True, blank=True)
    link_bytes_per_second = models.BigIntegerField(_("link inside the node"), null=True, blank=True)
    """One direction, inside the node."""
    figures = models.JSONField(_("figures with sources"), default=dict, blank=True)

    class Meta:
        ordering = ["vendor", "slug", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["id", "vendor"], name="inventory_acceleratormodel_id_vendor_unique"
            ),
            models.CheckConstraint(
                condition=(Q(memory_bytes__isnull=True) | Q(memory_bytes__gt=0))
                & (Q(bandwidth_bytes_per_second__isnull=True) | Q(bandwidth_bytes_per_second__gt=0))
                & (Q(bf16_tflops__isnull=True) | Q(bf16_tflops__gt=0))
                & (Q(fp8_tflops__isnull=True) | Q(fp8_tflops__gt=0))
                & (Q(tdp_watts__isnull=True) | Q(tdp_watts__gt=0))
                & (Q(link_bytes_per_second__isnull=True) | Q(link_bytes_per_second__gt=0)),
                name="inventory_acceleratormodel_figures_positive",
                violation_error_message=_("A figure is above 0, or left out when unknown."),
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class NodeType(TimestampedModel):
    """How many accelerators of which model a kind of node holds."""

    slug = slug_field()
    name = models.CharField(_("name"), max_length=100)
    vendor = models.SlugField(_("vendor"), max_length=50)
    accelerator_model = models.ForeignKey(
        AcceleratorModel, on_delete=models.PROTECT, related_name="node_types"
    )
    accelerator_count = models.PositiveSmallIntegerField(_("accelerators"))

    class Meta:
        ordering = ["slug", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(accelerator_count__gte=1) & Q(accelerator_count__lte=64),
                name="inventory_nodetype_has_accelerators",
                violation_error_message=_("A node type has 1 to 64 accelerators."),
            ),
        ]

    def __str__(self) -> str:
        return self.slug
