"""Who may call the API at all."""

from datetime import timedelta

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from controlplane.tenancy import services
from controlplane.tenancy.models import ApiToken
from tests.factories import make_admin, make_api_client, make_api_token

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def _get(secret: str, **extra: str) -> tuple[int, str]:
    response = Client().get(
        "/api/v1/tenants", headers={"Authorization": f"Bearer {secret}"}, **extra
    )
    return response.status_code, response.json().get("code", "")


def test_a_token_acts_for_its_owner() -> None:
    _token, secret = make_api_token(scopes=["tenancy:read"])

    assert _get(secret) == (200, "")


@pytest.mark.parametrize(
    "spoil", [lambda s: s[:-1] + "!", lambda s: "x" + s, lambda s: "", str.upper]
)
def test_a_damaged_secret_is_nobody(spoil: object) -> None:
    _token, secret = make_api_token()

    assert _get(spoil(secret)) == (401, "not-authenticated")


def test_another_secret_with_the_same_prefix_is_nobody() -> None:
    token, _secret = make_api_token()

    assert _get(f"{token.prefix}_{'a' * 43}") == (401, "not-authenticated")


def test_a_revoked_token_says_so() -> None:
    token, secret = make_api_token()
    services.revoke_api_token(token_id=token.pk, actor=token.owner)

    assert _get(secret) == (401, "token-revoked")


def test_an_expired_token_says_so() -> None:
    _token, secret = make_api_token(expires_in_days=1)

    with time_machine.travel(timezone.now() + timedelta(days=1, seconds=1)):
        assert _get(secret) == (401, "token-expired")


def test_a_token_works_only_from_its_networks() -> None:
    _token, secret = make_api_token(allowed_networks=["203.0.113.0/24"])

    assert _get(secret, REMOTE_ADDR="203.0.113.7") == (200, "")
    assert _get(secret, REMOTE_ADDR="198.51.100.7") == (401, "token-network")


def test_a_forged_forwarding_header_does_not_help() -> None:
    _token, secret = make_api_token(allowed_networks=["203.0.113.0/24"])

    answer = _get(secret, REMOTE_ADDR="198.51.100.7", HTTP_X_FORWARDED_FOR="203.0.113.7")

    assert answer == (401, "token-network")


def test_scopes_limit_what_the_owner_may() -> None:
    client = make_api_client(make_admin(), scopes=["inventory:read", "tenancy:read"])

    assert client.get("/api/v1/tenants").status_code == 200
    assert client.get("/api/v1/audit-entries").status_code == 403
    refused = client.post(
        "/api/v1/organisations", {"slug": "a", "name": "A"}, format="json",
        headers={"Idempotency-Key": "key-12345"},
    )  # fmt: skip
    assert refused.status_code == 403


def test_the_token_of_somebody_who_left_is_nobody() -> None:
    token, secret = make_api_token()
    token.owner.is_active = False
    token.owner.save()

    assert _get(secret) == (401, "not-authenticated")


def test_use_is_noted_at_most_once_a_minute() -> None:
    token, secret = make_api_token()
    start = timezone.now()

    for seconds in (0, 30, 61):
        with time_machine.travel(start + timedelta(seconds=seconds), tick=False):
            _get(secret, REMOTE_ADDR="203.0.113.7")

    used = ApiToken.objects.get(pk=token.pk)
    assert (used.last_used_at - start).total_seconds() == pytest.approx(61, abs=0.1)
    assert used.last_used_address == "203.0.113.7"


def test_a_session_needs_the_csrf_token_for_writes() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_admin())

    response = client.post(
        "/api/v1/organisations", {"slug": "a", "name": "A"}, content_type="application/json",
        headers={"Idempotency-Key": "key-12345"},
    )  # fmt: skip

    assert (response.status_code, response.json()["code"]) == (403, "csrf-failed")


def test_a_session_may_read() -> None:
    client = Client()
    client.force_login(make_admin())

    assert client.get("/api/v1/tenants").status_code == 200
