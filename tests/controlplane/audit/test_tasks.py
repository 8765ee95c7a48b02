"""Periodic work on the chain."""

import pytest

from controlplane.audit import services, tasks
from controlplane.audit.models import AuditLink
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db


def test_a_task_delivered_twice_chains_once() -> None:
    services.record(actor=None, action="a", subject=make_tenant())

    tasks.extend_chain()
    tasks.extend_chain()

    assert AuditLink.objects.count() == 1
