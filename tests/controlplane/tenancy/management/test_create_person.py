"""The first administrator."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from controlplane.audit.models import AuditEntry
from controlplane.tenancy.models import User

pytestmark = pytest.mark.django_db


def create(*arguments: str) -> str:
    out = StringIO()
    call_command("create_person", *arguments, stdout=out)
    return out.getvalue()


def test_the_password_is_shown_once_and_works() -> None:
    username, password = create("olga", "--role", "platform-admin").split()

    person = User.objects.get(username=username)
    assert person.check_password(password)
    assert person.roles == ["platform-admin"]
    assert password not in str(list(AuditEntry.objects.values()))


def test_a_name_that_is_taken_changes_nobody() -> None:
    _, password = create("olga", "--role", "auditor").split()

    with pytest.raises(CommandError, match="name"):
        create("olga", "--role", "platform-admin")

    person = User.objects.get(username="olga")
    assert (person.roles, person.check_password(password)) == (["auditor"], True)


def test_a_role_of_a_tenant_is_no_role_of_the_platform() -> None:
    with pytest.raises(CommandError, match="tenant-admin"):
        create("ana", "--role", "tenant-admin")
