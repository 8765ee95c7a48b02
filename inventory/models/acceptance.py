"""Many findings that somebody takes over at once."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from controlplane.common.models import TimestampedModel


class Acceptance(TimestampedModel):
    """A choice of findings and what became of them; an operation works through it."""

    findings = models.JSONField(_("findings"), default=list)
    """Ids, in the order in which they are taken over."""
    model = models.SlugField(_("accelerator model"), max_length=100, blank=True)
    """For nodes of which no source names the model."""
    reason = models.CharField(_("reason"), max_length=200)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    accepted = models.PositiveIntegerField(_("accepted"), default=0)
    refused = models.JSONField(_("refused"), default=list)
    """[{"finding", "hostname", "code", "detail"}], the first hundred; the rest is counted."""
    refused_count = models.PositiveIntegerField(_("refused"), default=0)

    class Meta:
        ordering = ["-created_at", "pk"]

    def __str__(self) -> str:
        return _("%(count)d findings") % {"count": len(self.findings)}
