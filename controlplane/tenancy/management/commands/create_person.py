"""`manage.py create_person`: somebody who can log in, such as the first administrator."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from controlplane.tenancy.models import Role
from controlplane.tenancy.services import people

OF_A_TENANT = (Role.TENANT_ADMIN, Role.TENANT_VIEWER)
PLATFORM_ROLES = [role.value for role in Role if role not in OF_A_TENANT]


class Command(BaseCommand):
    """The password is made here and shown once; the audit log has the account."""

    help = "Make an account with roles and print its password, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name and roles."""
        parser.add_argument("username")
        parser.add_argument(
            "--role", action="append", required=True, choices=PLATFORM_ROLES, dest="roles"
        )
        parser.add_argument("--full-name", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the account."""
        password = "-".join(secrets.token_hex(3) for _ in range(4))
        try:
            person = people.create_user(
                username=options["username"],
                password=password,
                roles=options["roles"],
                full_name=options["full_name"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(f"{person.username} {password}")
