"""Base classes of tables."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from controlplane.common.ids import uuid7


class TimestampedModel(models.Model):
    """A row with a time-ordered id and the times of its first and last write."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        abstract = True
