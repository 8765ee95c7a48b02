"""Limits per credential."""

from datetime import timedelta

import pytest
import time_machine
from django.test import override_settings
from django.utils import timezone

from controlplane.api.throttles import HEAVY
from tests.factories import make_admin, make_api_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
MINUTE = timezone.now().replace(second=0, microsecond=0) + timedelta(minutes=5)


def test_every_answer_says_how_much_is_left() -> None:
    client = make_api_client(make_admin())

    with time_machine.travel(MINUTE, tick=False):
        response = client.get("/api/v1/organisations")

    assert response["RateLimit-Policy"] == '"default";q=600;w=60'
    assert response["RateLimit"] == '"default";r=599;t=60'


def test_too_many_requests_are_refused_until_the_window_moved_on() -> None:
    client, other = make_api_client(make_admin()), make_api_client(make_admin())
    url = "/api/v1/organisations?dry_run=true"
    body = {"slug": "hanbit", "name": "Hanbit"}

    with time_machine.travel(MINUTE, tick=False):
        statuses = [client.post(url, body, format="json").status_code for _ in range(HEAVY.quota)]
        refused = client.post(url, body, format="json")
        somebody_else = other.post(url, body, format="json")
    with time_machine.travel(MINUTE + timedelta(seconds=60), tick=False):
        still = client.post(url, body, format="json")
    with time_machine.travel(MINUTE + timedelta(seconds=90), tick=False):
        later = client.post(url, body, format="json")

    assert set(statuses) == {200}
    assert (refused.status_code, refused.json()["code"]) == (429, "rate-limited")
    assert refused["Retry-After"] == "60"
    assert somebody_else.status_code == 200
    assert still.status_code == 429
    assert later.status_code == 200


def test_without_the_cache_reads_go_on() -> None:
    client = make_api_client(make_admin())
    away = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache",
                        "LOCATION": "unix:///nowhere/valkey.sock"}}  # fmt: skip

    with override_settings(CACHES=away):
        response = client.get("/api/v1/organisations")

    assert response.status_code == 200
    assert "RateLimit" not in response
