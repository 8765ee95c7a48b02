"""Reads of the audit log."""

import pytest

from controlplane.audit import selectors, services
from controlplane.tenancy.models import Role
from tests.factories import make_ana, make_ben, make_tenant, make_user

pytestmark = pytest.mark.django_db


def test_ben_sees_nothing_of_anas() -> None:
    ana, ben = make_ana(), make_ben()
    entry = services.record(actor=ana, action="a", subject=ana.tenant)

    assert list(selectors.entries_for_viewer(ana)) == []
    assert list(selectors.entries_for_viewer(ben)) == []
    assert list(selectors.entries_for_viewer(make_user(None, Role.AUDITOR))) == [entry]


def test_the_timeline_of_a_row_is_its_own_latest_first() -> None:
    tenant, other = make_tenant(), make_tenant()
    first = services.record(actor=None, action="a", subject=tenant)
    services.record(actor=None, action="b", subject=other)
    last = services.record(actor=None, action="c", subject=tenant)

    assert list(selectors.entries_about(tenant)) == [last, first]
