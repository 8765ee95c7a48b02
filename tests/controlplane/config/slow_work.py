"""A task that says who it is and then waits for a file, for tests that kill its worker."""

import os
import time
from pathlib import Path

from celery import shared_task

from controlplane.operations import services

CLAIM_SECONDS = 1
DEADLINE_SECONDS = 60


@shared_task
def wait_for_file(operation_id: str) -> None:
    """Claim, write the own pid, wait for the file that the operation's kind names, succeed."""
    operation = services.claim(operation_id, seconds=CLAIM_SECONDS)
    if operation is None:
        return
    services.progress(operation, done=os.getpid(), total=2**31 - 1)
    services.renew(operation, seconds=CLAIM_SECONDS)
    until = time.monotonic() + DEADLINE_SECONDS
    while not Path(operation.kind).exists() and time.monotonic() < until:
        time.sleep(0.05)
        services.renew(operation, seconds=CLAIM_SECONDS)
    services.succeed(operation)
