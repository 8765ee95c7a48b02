"""Beat's pulse."""

from django.db import models


class BeatTick(models.Model):
    """When the last tick of a name was worked off; a stale one shows that beat or workers stand."""

    name = models.CharField(max_length=32, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
