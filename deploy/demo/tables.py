"""Brings the demo's tables up to date."""

from django.core.management import call_command
from django.db import Error

from deploy.demo.installation import InstallationError


def migrate() -> None:
    """Run the migrations that are missing. Raises InstallationError."""
    try:
        call_command("migrate", verbosity=0, interactive=False)
    except Error as error:
        raise InstallationError(
            f"The tables could not be brought up to date: {error} "
            "If the data is of an older version, 'make demo-reset' starts afresh."
        ) from error
