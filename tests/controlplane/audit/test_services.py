"""Entries and denials."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from controlplane.audit import services
from controlplane.audit.models import AuditEntry
from controlplane.common import denials, origin, permissions, request_id
from tests.factories import make_admin, make_ana, make_project, make_tenant

pytestmark = pytest.mark.django_db


def test_an_entry_says_who_did_what_to_what_and_from_where() -> None:
    admin, project = make_admin(), make_project()

    with request_id.bound("r-1"), origin.bound(origin.Origin("user", "session", "203.0.113.7")):
        services.record(actor=admin, action="project.rename", subject=project, reason="typo")

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_kind, entry.auth_method) == (admin, "user", "session")
    assert (entry.object_type, entry.object_id) == ("tenancy.project", str(project.pk))
    assert (entry.tenant, entry.source_ip, entry.request_id) == (
        project.tenant,
        "203.0.113.7",
        "r-1",
    )


def test_without_an_actor_it_was_the_system() -> None:
    services.record(actor=None, action="tenant.create", subject=make_tenant())

    assert AuditEntry.objects.get().actor_kind == "system"


def test_only_fields_that_differ_are_kept() -> None:
    entry = services.record(
        actor=None, action="x", subject=make_tenant(),
        before={"name": "A", "state": "active"}, after={"name": "B", "state": "active"},
    )  # fmt: skip

    assert (entry.before, entry.after) == ({"name": "A"}, {"name": "B"})


def test_an_entry_vanishes_with_the_change_it_tells_of() -> None:
    tenant = make_tenant()

    with transaction.atomic():
        services.record(actor=None, action="x", subject=tenant)
        transaction.set_rollback(True)

    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    "statement", ["UPDATE audit_auditentry SET action = 'y'", "DELETE FROM audit_auditentry"]
)
def test_the_database_refuses_to_change_an_entry(statement: str) -> None:
    services.record(actor=None, action="x", subject=make_tenant())

    with (
        pytest.raises(IntegrityError, match="insert only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert AuditEntry.objects.get().action == "x"


def test_a_denial_within_a_request_is_recorded_after_its_rollback() -> None:
    ana, other = make_ana(), make_tenant()

    with denials.collected() as refused:
        with pytest.raises(permissions.NotPermittedError), transaction.atomic():
            permissions.require(ana, "tenancy.change_tenant", other)
        for denial in refused:
            services.record_denial(denial)

    entry = AuditEntry.objects.get()
    assert (entry.result, entry.action, entry.actor) == ("denied", "tenancy.change_tenant", ana)


def test_repeated_denials_are_one_entry() -> None:
    denial = denials.Denial(actor=make_ana(), action="x", subject=None)

    entries = [services.record_denial(denial) for _ in range(3)]

    assert [entry is None for entry in entries] == [False, True, True]


def test_the_middleware_leaves_requests_without_denials_alone(client: Client) -> None:
    client.get("/healthz")

    assert not AuditEntry.objects.exists()
