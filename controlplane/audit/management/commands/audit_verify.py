"""`manage.py audit_verify`: is the audit log as it was written?"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.audit import chain


class Command(BaseCommand):
    """Ends with 1 and names the first bad link if anything was changed, dropped or added."""

    help = "Check the hash chain of the audit log against its entries."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the verdict."""
        verdict = chain.verify()
        if not verdict.is_good:
            raise CommandError(verdict.fault)
        self.stdout.write(
            f"Verified up to seq {verdict.links}; {verdict.unchained} entries wait for their place."
        )
