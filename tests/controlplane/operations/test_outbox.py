"""Events."""

import pytest
from django.db import transaction

from controlplane.common import request_id
from controlplane.operations import outbox
from controlplane.operations.models import OutboxEvent
from tests.factories import make_project, make_tenant

pytestmark = pytest.mark.django_db


def test_an_event_names_its_subject_its_tenant_and_its_request() -> None:
    project = make_project()

    with request_id.bound("r-1"):
        outbox.emit("consort.project.created", subject=project, data={"n": 1})

    event = OutboxEvent.objects.get()
    assert (event.subject_type, event.subject_id) == ("tenancy.project", str(project.pk))
    assert (event.tenant, event.data, event.request_id) == (project.tenant, {"n": 1}, "r-1")
    assert event.dispatched_at is None


def test_an_event_vanishes_with_its_change() -> None:
    tenant = make_tenant()

    with transaction.atomic():
        outbox.emit("consort.tenant.suspended", subject=tenant)
        transaction.set_rollback(True)

    assert not OutboxEvent.objects.exists()
