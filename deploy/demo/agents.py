"""Stands in for the node agents of the demo: says every half minute what each node holds.

The observations go through the same service as an agent's report. One node keeps silent, so that
its health is unknown: one of the things to find.
"""

import os
import sys
import threading

import django

EVERY_SECONDS = 30.0


def main() -> int:
    """Report until SIGTERM."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")
    django.setup()
    from deploy.demo import observe  # needs Django

    never = threading.Event()
    while True:
        observe.report()
        never.wait(EVERY_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
