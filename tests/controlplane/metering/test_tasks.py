"""Tasks pull, sum and reconcile without anybody's help."""

import pytest

from controlplane.metering import services, tasks
from controlplane.metering.models import Reconciliation, RouterProgress, UsageHour
from controlplane.serving.models import Router
from tests.controlplane.metering.rows import make_events, make_segment

pytestmark = pytest.mark.django_db


def test_events_become_hours_although_a_router_is_away() -> None:
    services.ingest_segment(make_segment(make_events(1, 3)))
    Router.objects.create(
        name="r2", admin_url="http://127.0.0.1:9", public_url="http://127.0.0.1:9",
        token_reference="env:NO_SUCH_TOKEN",
    )  # fmt: skip

    tasks.pull_usage()
    tasks.reconcile_recent()
    tasks.delete_old_events()

    assert UsageHour.objects.get().requests == 3
    assert "ConnectError" in RouterProgress.objects.get(router="r2").last_error
    assert not Reconciliation.objects.exists()
