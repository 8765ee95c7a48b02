"""Servers and clean state for all tests.

Tests talk to the embedded PostgreSQL and Valkey (or to those that DATABASE_URL and BROKER_URL name)
in databases of their own, one per pytest worker. Tasks are not sent: `sent_tasks` lists them.
"""

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from celery import Celery, current_app
from django.conf import settings
from django.core.cache import cache
from django.test import override_settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

from controlplane.config.embedded.__main__ import start as start_embedded
from tests.racing import at_the_same_time as _at_the_same_time

pytest_plugins = ["tests.kubernetes.plugin"]

FIRST_BROKER, FIRST_CACHE, TEST_DATABASES = 2, 9, 7
"""Valkey has 16 databases; 0 and 1 belong to the installation itself."""

# How long an example takes says something of the machine that runs it, and of what else it runs.
hypothesis.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a part that is missing is a fault of the set-up, so a skipped test fails there."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped in CI: {call.excinfo and call.excinfo.value}"
    return report


@pytest.fixture(scope="session")
def embedded_servers() -> None:
    """PostgreSQL and Valkey answer; survivors of an earlier run are used as they are."""
    start_embedded()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    embedded_servers: None, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """The database server runs before the test database is made."""


@pytest.fixture(scope="session")
def broker_url(test_settings: str, embedded_servers: None) -> str:
    """Address of this pytest worker's own broker, which answers."""
    return test_settings


@pytest.fixture(scope="session", autouse=True)
def test_settings(worker_id: str) -> Iterator[str]:
    """Cheap passwords, and a cache and a broker of this pytest worker's own; yields the broker."""
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    number = int(worker_id.removeprefix("gw")) % TEST_DATABASES
    broker = _database(settings.CELERY_BROKER_URL, f"virtual_host={FIRST_BROKER + number}")
    current_app.conf.broker_url = current_app.conf.broker_write_url = broker
    current_app.conf.broker_read_url = broker
    # Clearing the cache empties its whole database, so a prefix would not be enough.
    cache_url = _database(settings.CACHES["default"]["LOCATION"], f"db={FIRST_CACHE + number}")
    with override_settings(
        CACHES={"default": settings.CACHES["default"] | {"LOCATION": cache_url}},
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ):
        yield broker


def _database(url: str, choice: str) -> str:
    return f"{url.split('?')[0]}?{choice}"


@pytest.fixture(scope="session")
def worker_id() -> str:
    """Name of the pytest-xdist worker, "gw0" without xdist."""
    return os.environ.get("PYTEST_XDIST_WORKER", "gw0")


@pytest.fixture(autouse=True)
def sent_tasks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """What was queued instead of sent: (name of the task, arguments), in order."""
    sent: list[tuple[str, tuple[Any, ...]]] = []

    def note(_app: Celery, name: str, args: Any = None, **_options: Any) -> None:
        sent.append((name, tuple(args or ())))

    monkeypatch.setattr(Celery, "send_task", note)
    return sent


@pytest.fixture
def clean_cache(embedded_servers: None) -> Iterator[None]:
    """An empty cache: counters of throttles start at zero."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def real_broker(
    broker_url: str, monkeypatch: pytest.MonkeyPatch, sent_tasks: list[Any]
) -> Iterator[str]:
    """Tasks really go to a broker, which is empty at the start; yields its address."""
    monkeypatch.undo()
    current_app.control.purge()
    yield broker_url
    current_app.control.purge()


@pytest.fixture
def at_the_same_time() -> Any:
    """`at_the_same_time(6, service, ...)`: outcomes of six callers that start together."""
    return _at_the_same_time
