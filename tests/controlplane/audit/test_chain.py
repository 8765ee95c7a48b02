"""The chain, and who breaks it."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from controlplane.audit import chain, services, tasks
from controlplane.audit.models import AuditEntry, AuditLink
from tests.factories import make_tenant
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db


def _entries(count: int) -> None:
    tenant = make_tenant()
    for number in range(count):
        services.record(actor=None, action=f"step-{number}", subject=tenant, after={"n": number})


@contextmanager
def _without_trigger() -> Iterator[None]:
    """What somebody with the rights of a database administrator can do."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        cursor.execute("SET LOCAL session_replication_role = origin")


def _execute(statement: str) -> None:
    with _without_trigger(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_every_entry_gets_one_place_without_gaps() -> None:
    _entries(5)

    tasks.extend_chain()
    _entries(3)
    tasks.extend_chain()

    assert list(AuditLink.objects.values_list("seq", flat=True)) == list(range(1, 9))
    assert chain.verify() == chain.Verdict(links=8, unchained=0)


def test_a_second_run_adds_nothing() -> None:
    _entries(2)

    assert (chain.extend(), chain.extend()) == (2, 0)


def test_an_empty_log_is_good() -> None:
    assert chain.verify() == chain.Verdict(links=0, unchained=0)


def test_waiting_entries_are_counted() -> None:
    _entries(3)

    assert chain.verify().unchained == 3


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE audit_auditentry SET reason = 'x' WHERE action = 'step-2'",
         "The entry of link 3 was changed."),
        ("UPDATE audit_auditentry SET time = time + interval '1 microsecond' "
         "WHERE action = 'step-0'", "The entry of link 1 was changed."),
        ("UPDATE audit_auditentry SET after = '{\"n\": 7}' WHERE action = 'step-1'",
         "The entry of link 2 was changed."),
        ("DELETE FROM audit_auditentry WHERE action = 'step-1'",
         "The entry of link 2 is missing."),
        ("DELETE FROM audit_auditlink WHERE seq = 2", "Link 2 is missing; the next one is 3."),
        ("UPDATE audit_auditlink SET prev_hash = sha256('x') WHERE seq = 3",
         "Link 3 does not follow the link before it."),
        ("UPDATE audit_auditlink SET hash = sha256('x') WHERE seq = 4",
         "The hash of link 4 is wrong."),
        ("UPDATE audit_auditlink SET entry_hash = sha256('x') WHERE seq = 1",
         "The hash of link 1 is wrong."),
        ("UPDATE audit_auditlink SET seq = seq + 1 WHERE seq = 4",
         "Link 4 is missing; the next one is 5."),
    ],
)  # fmt: skip
def test_a_change_behind_our_back_is_named(statement: str, fault: str) -> None:
    _entries(4)
    chain.extend()

    _execute(statement)

    assert chain.verify().fault == fault


def test_two_entries_swapped_are_found() -> None:
    _entries(3)
    chain.extend()

    _execute(
        "UPDATE audit_auditlink AS one SET entry_hash = other.entry_hash "
        "FROM audit_auditlink AS other WHERE one.seq + other.seq = 3"
    )

    assert chain.verify().fault == "The hash of link 1 is wrong."


def test_the_command_ends_with_the_verdict() -> None:
    _entries(2)
    chain.extend()
    out = io.StringIO()

    call_command("audit_verify", stdout=out)

    assert out.getvalue().strip() == "Verified up to seq 2; 0 entries wait for their place."


def test_the_command_fails_with_the_fault() -> None:
    _entries(2)
    chain.extend()
    _execute("DELETE FROM audit_auditentry WHERE action = 'step-0'")

    with pytest.raises(CommandError, match="The entry of link 1 is missing"):
        call_command("audit_verify")


@pytest.mark.django_db(transaction=True)
def test_of_several_chainers_at_once_none_doubles_a_place() -> None:
    _entries(40)

    at_the_same_time(6, chain.extend)
    chain.extend()

    assert chain.verify() == chain.Verdict(links=AuditEntry.objects.count(), unchained=0)
