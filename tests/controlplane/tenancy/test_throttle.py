"""Failed logins per address."""

import pytest
from django.test import override_settings

from controlplane.tenancy import services
from controlplane.tenancy.errors import LoginUnavailableError, TooManyAttemptsError

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_ten_failures_close_the_door_to_the_address_and_no_other() -> None:
    for _ in range(10):
        services.check_login(address="203.0.113.7")
        services.note_failed_login(username="x", address="203.0.113.7")

    with pytest.raises(TooManyAttemptsError):
        services.check_login(address="203.0.113.7")
    services.check_login(address="203.0.113.8")


def test_without_the_counter_nobody_logs_in() -> None:
    away = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache",
                        "LOCATION": "unix:///nowhere/valkey.sock"}}  # fmt: skip

    with override_settings(CACHES=away), pytest.raises(LoginUnavailableError):
        services.check_login(address="203.0.113.7")
