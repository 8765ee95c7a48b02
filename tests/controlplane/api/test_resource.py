"""What every resource does besides its own work."""

from urllib.parse import quote

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.operations.models import OutboxEvent
from controlplane.tenancy.models import Organisation
from tests.factories import make_admin, make_api_client, make_inference_key, make_organisation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_a_row_is_found_by_id_and_by_slug() -> None:
    client, row = make_api_client(make_admin()), make_organisation(slug="hanbit")

    by_id = client.get(f"/api/v1/organisations/{row.pk}")
    by_slug = client.get("/api/v1/organisations/hanbit")

    assert by_id.json() == by_slug.json()


def test_a_key_is_found_by_its_prefix() -> None:
    key, _secret = make_inference_key()

    response = make_api_client(make_admin()).get(f"/api/v1/inference-keys/{key.prefix}")

    assert response.json()["id"] == str(key.pk)


def test_a_slash_at_the_end_is_accepted_on_reads_and_writes() -> None:
    client = make_api_client(make_admin())

    created = client.post(
        "/api/v1/organisations/", {"slug": "hanbit", "name": "Hanbit"}, format="json",
        headers={"Idempotency-Key": "key-12345"},
    )  # fmt: skip

    assert created.status_code == 201
    assert client.get("/api/v1/organisations/hanbit/").status_code == 200


def test_a_merge_patch_means_the_same_as_json() -> None:
    client, row = make_api_client(make_admin()), make_organisation()

    response = client.patch(
        f"/api/v1/organisations/{row.pk}", b'{"name": "Other"}',
        content_type="application/merge-patch+json",
    )  # fmt: skip

    assert response.json()["name"] == "Other"


def test_the_reason_may_stand_in_a_header() -> None:
    client, row = make_api_client(make_admin()), make_organisation()

    client.patch(
        f"/api/v1/organisations/{row.pk}", {"name": "Other"}, format="json",
        headers={"X-Change-Reason": quote("계약 변경")},
    )  # fmt: skip

    assert AuditEntry.objects.get(action="organisation.rename").reason == "계약 변경"


def test_the_reason_in_the_body_wins() -> None:
    client, row = make_api_client(make_admin()), make_organisation()

    client.patch(
        f"/api/v1/organisations/{row.pk}", {"name": "Other", "change_reason": "body"},
        format="json", headers={"X-Change-Reason": "header"},
    )  # fmt: skip

    assert AuditEntry.objects.get(action="organisation.rename").reason == "body"


def test_a_reason_that_cannot_be_read_is_refused() -> None:
    client, row = make_api_client(make_admin()), make_organisation()

    response = client.patch(
        f"/api/v1/organisations/{row.pk}", {"name": "Other"}, format="json",
        headers={"X-Change-Reason": "%ff%fe"},
    )  # fmt: skip

    assert (response.status_code, response.json()["code"]) == (400, "invalid-header")


def test_a_dry_run_checks_everything_and_stores_nothing() -> None:
    client = make_api_client(make_admin())
    url = "/api/v1/organisations?dry_run=true"
    before = AuditEntry.objects.count()

    fine = client.post(url, {"slug": "hanbit", "name": "Hanbit"}, format="json")
    wrong = client.post(url, {"slug": "NO", "name": "Hanbit"}, format="json")

    assert (fine.status_code, fine.json()["dry_run"]) == (200, True)
    assert fine.json()["result"]["slug"] == "hanbit"
    assert wrong.status_code == 422
    assert not Organisation.objects.exists()
    assert not OutboxEvent.objects.exists()
    assert AuditEntry.objects.count() == before


def test_a_dry_run_is_refused_where_it_is_not_offered() -> None:
    client = make_api_client(make_admin())
    key, _secret = make_inference_key()

    response = client.post(
        f"/api/v1/inference-keys/{key.pk}/revoke?dry_run=true", {"change_reason": "x"},
        format="json", headers={"Idempotency-Key": "key-12345"},
    )  # fmt: skip

    assert (response.status_code, response.json()["code"]) == (400, "unknown-parameter")


def test_answers_are_not_cached() -> None:
    response = make_api_client(make_admin()).get("/api/v1/organisations")

    assert response["Cache-Control"] == "no-store"


def test_a_denial_is_in_the_audit_log_once_a_minute() -> None:
    from tests.factories import make_olga

    olga = make_olga()
    client = make_api_client(olga)

    for _ in range(3):
        client.get("/api/v1/audit-entries")

    entry = AuditEntry.objects.get(result="denied")
    assert (entry.actor, entry.action) == (olga, "audit.view_auditentry")
    assert (entry.actor_kind, entry.auth_method) == ("token", "api-token")
    assert entry.source_ip == "127.0.0.1"
