#!/usr/bin/env python
"""Django's command line for Consort."""

import os
import sys

from controlplane.config.embedded.__main__ import start as start_embedded

NEEDS_NO_SERVER = {"collectstatic", "compilemessages", "help", "makemessages", "version"}


def main() -> None:
    """Start the embedded servers if no URL names others, then run one command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")
    if len(sys.argv) > 1 and sys.argv[1] not in NEEDS_NO_SERVER:
        start_embedded()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
