"""Runs, standing advice and live races; each task may be delivered twice, late or not at all."""

from datetime import datetime
from uuid import UUID

from celery import shared_task

from controlplane.planning import services
from controlplane.planning.services.races import LONGEST_SECONDS

RACE_LIMIT = LONGEST_SECONDS + 60
"""Seconds; the race ends by itself before."""
STANDING_LIMIT = 240
"""Seconds for one pool, inside its lease; a third of a run takes about ten."""


@shared_task(acks_late=True)
def run_scenario(operation_id: str) -> None:
    """Work on a run of a scenario."""
    services.work_on_run(operation_id=UUID(operation_id))


@shared_task
def advise_standing() -> None:
    """Have the measured load of each pool compared with its present split."""
    services.ask_standing()


# Its message is gone when the work begins: what took a worker's memory would take the next one's,
# and the next quarter looks again anyway.
@shared_task(acks_late=False, soft_time_limit=STANDING_LIMIT, time_limit=STANDING_LIMIT + 20)
def advise_standing_of(pool_id: str, until: str) -> None:
    """The same for one pool, in the quarter of an hour that ends at a moment (ISO 8601)."""
    services.advise_standing(pool_id=UUID(pool_id), until=datetime.fromisoformat(until))


@shared_task
def forget_standing() -> None:
    """Delete old standing advice that led to nothing."""
    services.forget_standing()


# Half an hour in one process that nothing may share: on a queue and worker of its own. The message
# is gone when the work begins, since pools that a worker lost cannot be taken up by another.
@shared_task(acks_late=False, soft_time_limit=RACE_LIMIT, time_limit=RACE_LIMIT + 30)
def run_race(operation_id: str) -> None:
    """Simulate a live race until it ends."""
    services.work_on_race(operation_id=UUID(operation_id))


@shared_task
def end_stranded_races() -> None:
    """End races whose worker is gone, or that no worker took."""
    services.end_stranded_races()
