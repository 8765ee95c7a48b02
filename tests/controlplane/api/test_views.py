"""Health."""

import pytest
from django.db import connection
from django.test import Client

from controlplane.operations import broker

pytestmark = pytest.mark.django_db


def test_a_living_process_says_so_and_asks_nobody(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):
        response = Client().get("/healthz")

    assert response.json() == {"status": "ok"}


def test_a_ready_process_reaches_everything() -> None:
    response = Client().get("/readyz")

    assert (response.status_code, response.json()) == (200, {"status": "ok", "failing": []})


def test_a_missing_migration_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'audit' AND name LIKE '0002%'")

    response = Client().get("/readyz")

    assert (response.status_code, response.json()["failing"]) == (503, ["migrations"])


def test_a_probe_may_leave_checks_out() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'audit' AND name LIKE '0002%'")

    other = Client().get("/readyz?exclude=broker&exclude=cache")
    without = Client().get("/readyz?exclude=broker&exclude=migrations")

    assert (other.status_code, other.json()["failing"]) == (503, ["migrations"])
    assert (without.status_code, without.json()["failing"]) == (200, [])


def test_a_write_to_an_address_that_is_none_is_told_so() -> None:
    answer = Client(enforce_csrf_checks=True).post("/api/v1/nodes/x/explode")

    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_the_depth_of_the_queue_is_a_number() -> None:
    depth = broker.queue_depth()

    assert depth is not None
    assert depth >= 0
