"""Settings that do not fit each other."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from controlplane.config import checks


def _ids(**settings: Any) -> list[str]:
    with override_settings(**settings):
        found = [
            *checks.check_exposure(None), *checks.check_forms(None), *checks.check_delivery(None),
            *checks.check_paths(None),
        ]  # fmt: skip
    return [message.id for message in found]


SAFE = {"ALLOWED_HOSTS": ["localhost"], "DEBUG": False, "SECURE_COOKIES": False}


@pytest.mark.parametrize(
    ("settings", "identifier"),
    [
        ({"ALLOWED_HOSTS": ["a.example"], "DEBUG": True, "SECURE_COOKIES": True}, "W001"),
        ({"ALLOWED_HOSTS": ["a.example"], "SECURE_COOKIES": False}, "W002"),
        ({"LEDGER_CURRENCY": "won"}, "E001"),
        ({"KEY_ENVIRONMENT": "Production"}, "E002"),
        ({"KEY_ENVIRONMENT": "a_b"}, "E002"),
        ({"TRUSTED_PROXIES": ["10.0.0.0/8", "proxy"]}, "E003"),
        ({"CELERY_TASK_TIME_LIMIT": 400}, "E004"),
        ({"PERMISSIONS_BACKEND": "controlplane.nowhere.Nothing"}, "E005"),
    ],
)
def test_a_setting_that_does_not_fit_has_its_id(settings: dict[str, Any], identifier: str) -> None:
    own = [i for i in _ids(**SAFE | settings) if i.endswith(identifier)]

    assert own == [f"controlplane.{identifier}"]


def test_every_message_says_what_to_do() -> None:
    with override_settings(LEDGER_CURRENCY="won", KEY_ENVIRONMENT="X", TRUSTED_PROXIES=["x"]):
        found = checks.check_forms(None)

    assert all(message.hint for message in found)


def test_the_settings_of_the_project_fit() -> None:
    assert [m.id for m in run_checks() if str(m.id).startswith("controlplane.E")] == []
