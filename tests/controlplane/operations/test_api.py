"""Operations in the API."""

import threading
import time

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from controlplane.operations import selectors, services
from controlplane.operations.models import Operation
from tests.factories import make_admin, make_ana, make_api_client, make_ben, make_olga, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
TASK = "operations.tasks.sweep"


def _start(**overrides: object) -> Operation:
    defaults = {"kind": "test", "subject": None, "task": TASK, "actor": None, "steps": ["a"]}
    return services.start(**defaults | overrides)


def test_an_operation_shows_progress_steps_and_what_can_be_done() -> None:
    operation, client = _start(), make_api_client(make_olga())

    body = client.get(f"/api/v1/operations/{operation.pk}").json()

    assert body["progress"] == {"done": 0, "total": 1, "unit": "steps"}
    assert [step["name"] for step in body["steps"]] == ["a"]
    assert body["links"]["cancel"] == f"/api/v1/operations/{operation.pk}/cancel"


def test_cancel_and_retry_need_no_key_and_are_named_as_what_they_are() -> None:
    operation, client = _start(), make_api_client(make_olga())

    cancelled = client.post(f"/api/v1/operations/{operation.pk}/cancel", {}, format="json")
    again = client.post(f"/api/v1/operations/{operation.pk}/cancel", {}, format="json")
    retried = client.post(f"/api/v1/operations/{operation.pk}/retry", {}, format="json")

    assert cancelled.json()["state"] == "cancelled"
    assert (again.status_code, again.json()["code"]) == (409, "operation-ended")
    assert retried.json()["state"] == "pending"


def test_a_list_is_filtered_and_takes_the_same_queries_at_any_length() -> None:
    client = make_api_client(make_admin())
    counts = []
    for total in (50, 200):
        while Operation.objects.count() < total:
            _start(kind="other")
        with CaptureQueriesContext(connection) as queries:
            body = client.get("/api/v1/operations?kind=other&page_size=200").json()
        counts.append(len(queries))

    assert counts[0] == counts[1]
    assert len(body["items"]) == 200


def test_ben_sees_nothing_of_anas() -> None:
    ana, ben = make_ana(), make_ben()
    operation = _start(subject=ana.tenant)
    _start(subject=make_tenant())
    _start()

    assert not selectors.operations_for_viewer(ben).exists()
    assert list(selectors.operations_for_viewer(ana)) == [operation]
    response = make_api_client(ben).get(f"/api/v1/operations/{operation.pk}")
    assert response.status_code == 404


@pytest.mark.parametrize("wait", ["21", "-1", "soon"])
def test_a_wait_that_is_too_long_is_refused(wait: str) -> None:
    client = make_api_client(make_olga())

    response = client.get(f"/api/v1/operations/{_start().pk}?wait={wait}")

    assert (response.status_code, response.json()["code"]) == (400, "invalid-parameter")


@pytest.mark.django_db(transaction=True)
def test_a_held_answer_comes_with_the_change() -> None:
    operation, client = _start(), make_api_client(make_olga())

    def finish() -> None:
        services.succeed(services.claim(operation.pk))
        connections.close_all()

    later = threading.Timer(0.3, finish)
    later.start()
    start = time.monotonic()
    body = client.get(f"/api/v1/operations/{operation.pk}?wait=20").json()
    later.join()

    assert body["state"] in {"running", "succeeded"}
    assert time.monotonic() - start < 10
