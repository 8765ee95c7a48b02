"""Runs the loop of a pool in a process of its own, so that a test can kill it anywhere.

`python -m tests.controlplane.serving.loop_process POOL_ID`, with DATABASE_URL and the address of
the engine host in the environment. Ends when no plan is applied any more.
"""

import os
import sys
import time
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")
LONGEST_SECONDS = 60


def main(pool_id: UUID) -> int:
    from controlplane.serving import services
    from controlplane.serving.models import ChangePlan

    deadline = time.monotonic() + LONGEST_SECONDS
    applying = ChangePlan.objects.filter(pool=pool_id, state=ChangePlan.State.APPLYING)
    while applying.exists() and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=pool_id, patience_seconds=1.0)
    return 0


if __name__ == "__main__":
    django.setup()
    sys.exit(main(UUID(sys.argv[1])))
