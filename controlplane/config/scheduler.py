"""Beat's scheduler with a sign of life (`--scheduler controlplane.config.scheduler.Live`)."""

from pathlib import Path
from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings

from controlplane.config import liveness


class Live(PersistentScheduler):
    """Touches LIVENESS_FILE at each tick, of which the schedule has one every other second."""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; returns the seconds to the next tick."""
        if settings.LIVENESS_FILE:
            liveness.touch(Path(settings.LIVENESS_FILE))
        seconds: float = super().tick(*args, **kwargs)
        return seconds
