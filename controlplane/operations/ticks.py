"""Beat's pulse: a task that beat sends writes it, so it proves beat, broker and a worker."""

from datetime import datetime

from django.utils import timezone

from controlplane.operations.models import BeatTick


def note(name: str) -> None:
    """Write the time of a tick."""
    BeatTick.objects.update_or_create(name=name, defaults={"at": timezone.now()})


def last(name: str) -> datetime | None:
    """Time of the last tick; None if there was none."""
    return BeatTick.objects.filter(name=name).values_list("at", flat=True).first()
