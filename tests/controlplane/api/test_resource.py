"""What every resource does besides its own work."""

from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from controlplane.audit.models import AuditEntry
from controlplane.operations.models import OutboxEvent
from controlplane.tenancy.models import Organisation
from inventory.services import retire_node
from tests.factories import (
    make_admin,
    make_api_client,
    make_inference_key,
    make_olga,
    make_organisation,
    make_project,
)
from tests.inventory.factories import make_node

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


def test_a_name_of_several_rows_names_none_of_them() -> None:
    client, name = make_api_client(make_admin()), "main"
    first, second = make_project(slug=name), make_project(slug=name)

    answer = client.patch("/api/v1/projects/main", {"name": "Other"}, format="json")

    assert (answer.status_code, answer.json()["code"]) == (409, "name-not-unique")
    assert all(str(row.pk) in answer.json()["detail"] for row in (first, second))
    first.refresh_from_db()
    assert first.name != "Other"


def test_a_name_means_the_live_node_before_its_retired_namesakes() -> None:
    retired, olga = make_node(hostname="gpu-1"), make_olga()
    retire_node(node_id=retired.pk, reason="sold", actor=olga)
    client = make_api_client(olga)

    alone = client.get("/api/v1/nodes/gpu-1").json()
    live = make_node(hostname="gpu-1", cluster=retired.cluster)
    beside = client.get("/api/v1/nodes/gpu-1").json()

    assert (alone["id"], beside["id"]) == (str(retired.pk), str(live.pk))


@pytest.mark.parametrize("path", ["nodes/%00", "organisations/%00"])
def test_an_address_that_nothing_can_have_is_not_found(path: str) -> None:
    assert make_api_client(make_admin()).get(f"/api/v1/{path}").status_code == 404


def test_a_form_that_does_not_exist_is_refused_before_anything_is_written() -> None:
    answer = make_api_client(make_admin()).post(
        "/api/v1/organisations?brief=maybe", {"slug": "hanbit", "name": "Hanbit"}, format="json",
        headers={"Idempotency-Key": "key-12345"},
    )  # fmt: skip

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-parameter")
    assert not Organisation.objects.exists()


def test_times_are_utc_whatever_zone_the_person_chose_for_pages() -> None:
    make_organisation()
    client = APIClient()
    client.force_login(make_admin(time_zone="Asia/Seoul"))

    item = client.get("/api/v1/organisations").json()["items"][0]

    assert item["created_at"].endswith("Z")


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
    olga = make_olga()
    client = make_api_client(olga)

    for _ in range(3):
        client.get("/api/v1/audit-entries")

    entry = AuditEntry.objects.get(result="denied")
    assert (entry.actor, entry.action) == (olga, "audit.view_auditentry")
    assert (entry.actor_kind, entry.auth_method) == ("token", "api-token")
    assert entry.source_ip == "127.0.0.1"
