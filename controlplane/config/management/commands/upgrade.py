"""`manage.py upgrade`: what an installation needs before its processes start."""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from controlplane.serving.errors import RouterTokenError
from controlplane.serving.services.declared import DeclarationError, register_declared
from inventory.services.catalogue import load_catalogue

LOCK = 0x636F6E73
"""Key of the advisory lock, "cons"; whoever else uses this database must choose another."""
PAUSE_SECONDS = 0.5


class Command(BaseCommand):
    """Tables, shipped figures, declared routers. Safe to run twice and by several at once."""

    help = "Bring tables and shipped figures up to date and register the routers of a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long to wait, and the file of routers."""
        parser.add_argument(
            "--wait-seconds",
            type=float,
            default=60.0,
            help="for the database to answer, and for another caller to end",
        )
        parser.add_argument("--routers", type=Path, help="JSON file with routers to register")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it under a lock, for Django itself lets two callers migrate at the same time."""
        deadline = time.monotonic() + options["wait_seconds"]
        _connect(deadline)
        with _alone(deadline):
            call_command("migrate", interactive=False, verbosity=options["verbosity"])
            models = load_catalogue()
            self.stdout.write(f"{models} accelerator models are in the catalogue.")
            if options["routers"]:
                self._register(options["routers"])

    def _register(self, file: Path) -> None:
        try:
            changed = register_declared(file)
        except (DeclarationError, RouterTokenError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Routers registered or changed: {', '.join(changed) or 'none'}.")


def _connect(deadline: float) -> None:
    while True:
        try:
            connection.ensure_connection()
        except OperationalError as error:
            if time.monotonic() > deadline:
                raise CommandError(f"The database does not answer: {error}") from error
            time.sleep(PAUSE_SECONDS)
        else:
            return


@contextmanager
def _alone(deadline: float) -> Iterator[None]:
    """Hold the lock of this database; one that a killed holder left is free with its connection."""
    with connection.cursor() as cursor:
        while not _is_taken(cursor, "SELECT pg_try_advisory_lock(%s)"):
            if time.monotonic() > deadline:
                raise CommandError(
                    "Another 'manage.py upgrade' still runs on this database. Wait for its end, or"
                    " give more time by --wait-seconds."
                )
            time.sleep(PAUSE_SECONDS)
        try:
            yield
        finally:
            _is_taken(cursor, "SELECT pg_advisory_unlock(%s)")


def _is_taken(cursor: Any, query: str) -> bool:
    cursor.execute(query, [LOCK])
    return bool(cursor.fetchone()[0])
