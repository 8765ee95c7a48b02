"""Of several deliveries of one request, one has an effect."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.operations.models import IdempotencyRecord
from controlplane.operations.services import forget_idempotency_keys
from controlplane.tenancy.models import InferenceKey, Organisation
from tests.factories import make_admin, make_api_client, make_organisation, make_project
from tests.racing import at_the_same_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
KEY = "onboarding-2026-11-29"


def _post(client: APIClient, body: dict[str, Any] | None = None, key: str | None = KEY) -> Any:
    headers = {"Idempotency-Key": key} if key is not None else {}
    return client.post(
        "/api/v1/organisations", body or {"slug": "hanbit", "name": "Hanbit"}, format="json",
        headers=headers,
    )  # fmt: skip


def test_a_post_without_a_key_is_refused() -> None:
    response = _post(make_api_client(make_admin()), key=None)

    assert (response.status_code, response.json()["code"]) == (400, "idempotency-key-required")
    assert not Organisation.objects.exists()


@pytest.mark.parametrize("key", ["short", "with blank inside", "ü" * 10, "x" * 129, '""'])
def test_a_key_that_cannot_be_used_is_refused(key: str) -> None:
    response = _post(make_api_client(make_admin()), key=key)

    assert (response.status_code, response.json()["code"]) == (400, "idempotency-key-malformed")


def test_the_second_delivery_gets_the_first_answer() -> None:
    client = make_api_client(make_admin())

    first, second = _post(client), _post(client, key=f'"{KEY}"')

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotency-Replayed"] == "true"
    assert second["ETag"] == first["ETag"] if "ETag" in first else "ETag" not in second
    assert Organisation.objects.count() == 1


def test_the_order_of_members_does_not_matter() -> None:
    client = make_api_client(make_admin())

    _post(client, {"slug": "a-b", "name": "A"})
    second = _post(client, {"name": "A", "slug": "a-b"})

    assert second["Idempotency-Replayed"] == "true"


def test_another_request_with_the_same_key_is_refused() -> None:
    client = make_api_client(make_admin())
    _post(client)

    response = _post(client, {"slug": "other", "name": "Other"})

    assert (response.status_code, response.json()["code"]) == (422, "idempotency-key-reused")


def test_keys_of_two_people_do_not_meet() -> None:
    _post(make_api_client(make_admin()))

    response = _post(make_api_client(make_admin()), {"slug": "other", "name": "Other"})

    assert response.status_code == 201


def test_a_validation_error_is_kept() -> None:
    client = make_api_client(make_admin())

    first, second = (_post(client, {"slug": "NO", "name": "A"}) for _ in range(2))

    assert (first.status_code, second.status_code) == (422, 422)
    assert first.json()["errors"] == second.json()["errors"]
    assert second["Idempotency-Replayed"] == "true"
    assert second["Content-Type"] == "application/problem+json"


def test_after_a_conflict_the_key_may_be_tried_again() -> None:
    client, taken = make_api_client(make_admin()), make_organisation(slug="hanbit")
    conflict = _post(client)
    taken.delete()

    retried = _post(client)

    assert (conflict.status_code, conflict.json()["code"]) == (409, "duplicate")
    assert retried.status_code == 201
    assert "Idempotency-Replayed" not in retried


def test_a_running_request_is_named_as_such() -> None:
    admin = make_admin()
    client = make_api_client(admin)
    _post(client)
    IdempotencyRecord.objects.update(
        state="running", locked_until=timezone.now() + timedelta(seconds=60)
    )

    response = _post(client)

    assert (response.status_code, response.json()["code"]) == (409, "idempotency-in-progress")
    assert response["Retry-After"] == "1"


def test_a_dead_request_is_taken_over() -> None:
    client = make_api_client(make_admin())
    _post(client)
    Organisation.objects.all().delete()
    IdempotencyRecord.objects.update(
        state="running", locked_until=timezone.now() - timedelta(seconds=1)
    )

    response = _post(client)

    assert response.status_code == 201
    assert Organisation.objects.count() == 1


def test_a_secret_is_not_stored_and_not_repeated() -> None:
    client, project = make_api_client(make_admin()), make_project()
    body = {"project": str(project.pk), "name": "prod"}
    headers = {"Idempotency-Key": KEY}

    first = client.post("/api/v1/inference-keys", body, format="json", headers=headers).json()
    second = client.post("/api/v1/inference-keys", body, format="json", headers=headers).json()

    assert first["secret"].startswith(first["prefix"])
    assert (second["secret"], second["secret_shown"]) == (None, True)
    assert InferenceKey.objects.count() == 1
    assert first["secret"].encode() not in bytes(IdempotencyRecord.objects.get().response_body)


def test_a_record_is_forgotten_after_a_day() -> None:
    _post(make_api_client(make_admin()))

    with time_machine.travel(timezone.now() + timedelta(hours=24, seconds=1)):
        assert forget_idempotency_keys() == 1


def test_an_expired_key_is_free() -> None:
    client = make_api_client(make_admin())
    _post(client)
    IdempotencyRecord.objects.update(expires_at=timezone.now())

    response = _post(client, {"slug": "other", "name": "Other"})

    assert response.status_code == 201


@pytest.mark.django_db(transaction=True)
def test_of_twelve_deliveries_at_once_one_has_an_effect() -> None:
    admin = make_admin()
    client = make_api_client(admin)
    statuses: list[int] = []

    def deliver() -> None:
        statuses.append(_post(client).status_code)

    at_the_same_time(12, deliver)

    assert Organisation.objects.count() == 1
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert _post(client).status_code == 201
