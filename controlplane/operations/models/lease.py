"""The right to act on something outside, for a while."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Lease(models.Model):
    """Who may act on a resource until when. The row stays, so that its token only grows."""

    resource = models.CharField(max_length=200, primary_key=True)
    holder = models.CharField(max_length=200)
    token = models.BigIntegerField()
    """Fencing token: a target refuses a smaller one than it has seen."""
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["resource"]
        verbose_name = _("lease")

    def __str__(self) -> str:
        return f"{self.resource} ({self.holder}, {self.token})"
