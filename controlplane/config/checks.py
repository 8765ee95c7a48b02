"""System checks: settings that fit their own type but not each other.

`manage.py check` and every start of the server run them. Ids never change their meaning.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from controlplane.config.schedule import SCHEDULE

LOOPBACK = {"127.0.0.1", "localhost", "[::1]", "::1", "testserver"}
CURRENCY = re.compile(r"[A-Z]{3}\Z")
KEY_ENVIRONMENT = re.compile(r"[a-z0-9]{1,8}\Z")


@register
def check_exposure(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """What is fine on loopback is not fine for other hosts."""
    if set(settings.ALLOWED_HOSTS) <= LOOPBACK:
        return []
    found: list[CheckMessage] = []
    if settings.DEBUG:
        found.append(
            checks.Warning(
                "DEBUG is true and ALLOWED_HOSTS names more than loopback.",
                hint="Set DEBUG=false; tracebacks show settings and data.",
                id="controlplane.W001",
            )
        )
    if not settings.SECURE_COOKIES:
        found.append(
            checks.Warning(
                "SECURE_COOKIES is false and ALLOWED_HOSTS names more than loopback.",
                hint="Serve the console over HTTPS and set SECURE_COOKIES=true.",
                id="controlplane.W002",
            )
        )
    return found


@register
def check_forms(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """Values with a form of their own."""
    found: list[CheckMessage] = []
    if not CURRENCY.match(settings.LEDGER_CURRENCY):
        found.append(
            Error(
                f"LEDGER_CURRENCY={settings.LEDGER_CURRENCY!r} is not a currency.",
                hint="Use an ISO 4217 code such as USD, EUR or KRW.",
                id="controlplane.E001",
            )
        )
    if not KEY_ENVIRONMENT.match(settings.KEY_ENVIRONMENT):
        found.append(
            Error(
                f"KEY_ENVIRONMENT={settings.KEY_ENVIRONMENT!r} cannot stand in a key.",
                hint="Use 1 to 8 characters of a to z and 0 to 9, such as prd or test.",
                id="controlplane.E002",
            )
        )
    found += [
        Error(
            f"TRUSTED_PROXIES names {network!r}, which is no network.",
            hint="Write networks as 10.0.0.0/8 or 2001:db8::/32, separated by commas.",
            id="controlplane.E003",
        )
        for network in settings.TRUSTED_PROXIES
        if not _is_network(network)
    ]
    return found


@register
def check_delivery(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """A message must not come back while its first worker may still be at work."""
    visible = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    if visible > settings.CELERY_TASK_TIME_LIMIT:
        return []
    return [
        Error(
            f"A message comes back after {visible} s, but a task may take "
            f"{settings.CELERY_TASK_TIME_LIMIT} s.",
            hint="Make visibility_timeout longer than CELERY_TASK_TIME_LIMIT.",
            id="controlplane.E004",
        )
    ]


@register
def check_paths(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """Dotted paths lead somewhere."""

    paths = [settings.PERMISSIONS_BACKEND, *settings.PLAN_CHECKS]
    paths += [entry["task"] for entry in SCHEDULE.values()]
    return [
        Error(
            f"{path} cannot be imported: {reason}.",
            hint="Correct the path in the settings or the schedule.",
            id="controlplane.E005",
        )
        for path, reason in _broken(paths)
    ]


def _broken(paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    for path in paths:
        try:
            import_string(path)
        except ImportError as error:
            yield path, str(error)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True
