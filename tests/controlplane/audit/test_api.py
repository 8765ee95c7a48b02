"""The audit log in the API, and who sees what."""

import pytest

from controlplane.audit import selectors, services
from controlplane.tenancy.models import Role
from tests.factories import make_ana, make_api_client, make_ben, make_olga, make_tenant, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_an_auditor_filters_by_result_and_time() -> None:
    tenant = make_tenant()
    services.record(actor=None, action="a", subject=tenant)
    services.record(actor=None, action="b", subject=tenant, result="denied")
    client = make_api_client(make_user(None, Role.AUDITOR))

    items = client.get("/api/v1/audit-entries?result=denied&time__gte=2026-01-01T00:00:00Z").json()[
        "items"
    ]

    assert [item["action"] for item in items] == ["b"]


def test_nothing_can_be_written() -> None:
    client = make_api_client(make_user(None, Role.AUDITOR))

    statuses = {
        getattr(client, verb)("/api/v1/audit-entries", {}, format="json").status_code
        for verb in ("post", "put", "patch", "delete")
    }

    assert statuses == {405}


def test_ben_sees_nothing_of_anas() -> None:
    ana, ben = make_ana(), make_ben()
    services.record(actor=ana, action="a", subject=ana.tenant)

    assert not selectors.entries_for_viewer(ben).exists()


def test_who_operates_the_fleet_does_not_read_the_log() -> None:
    services.record(actor=None, action="a", subject=make_tenant())

    assert not selectors.entries_for_viewer(make_olga()).exists()
