"""What a target refused is remembered, so that it is asked again after a pause and not in a loop.

Another wish is another question: it is asked at once.
"""

from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.serving.models import Workload

FIRST_SECONDS, LONGEST_SECONDS = 5.0, 300.0
"""Pause before the same is asked again, doubled with each refusal in a row."""
_FIELDS = ["refusals", "refused_generation", "refused_at", "updated_at"]


def is_refused(workload: Workload) -> bool:
    """True while the target's last word on what is wanted at present was no."""
    return workload.refused_generation == workload.generation


def remember(workload: Workload) -> None:
    """The target said no to what is wanted at present."""
    workload.refusals = workload.refusals + 1 if is_refused(workload) else 1
    workload.refused_generation, workload.refused_at = workload.generation, timezone.now()
    workload.save(update_fields=_FIELDS)


def forget(workload: Workload) -> None:
    """The target took what was asked for."""
    if workload.refusals:
        workload.refusals, workload.refused_generation, workload.refused_at = 0, None, None
        workload.save(update_fields=_FIELDS)


def still_waits(workload: Workload, now: datetime) -> bool:
    """True while the same would be asked again too soon: 5, 10, 20 … 300 s."""
    if not is_refused(workload) or workload.refused_at is None:
        return False
    doubled = FIRST_SECONDS * 2.0 ** min(10, max(0, workload.refusals - 1))
    return now < workload.refused_at + timedelta(seconds=min(LONGEST_SECONDS, doubled))
