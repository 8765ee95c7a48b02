"""Reads of operations."""

import pytest

from controlplane.operations import selectors, services
from controlplane.operations.models import Operation
from tests.factories import make_ana, make_ben, make_olga, make_tenant

pytestmark = pytest.mark.django_db


def _start(subject: object) -> Operation:
    return services.start(kind="t", subject=subject, task="operations.tasks.sweep", actor=None)


def test_ben_sees_nothing_of_anas_and_olga_sees_all() -> None:
    ana, ben = make_ana(), make_ben()
    of_ana, of_fleet = _start(ana.tenant), _start(None)

    assert list(selectors.operations_for_viewer(ana)) == [of_ana]
    assert not selectors.operations_for_viewer(ben).exists()
    assert set(selectors.operations_for_viewer(make_olga())) == {of_ana, of_fleet}


def test_the_operations_of_a_row_are_its_own() -> None:
    tenant = make_tenant()
    own = _start(tenant)
    _start(make_tenant())

    assert list(selectors.operations_about(tenant)) == [own]
