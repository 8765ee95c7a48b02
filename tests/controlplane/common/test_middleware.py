"""Id and origin of a request."""

import uuid

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings

from controlplane.common import origin, request_id
from controlplane.common.middleware import RequestIdMiddleware


def _view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{request_id.current()} {origin.current().address}")


def test_inside_a_request_id_and_address_are_known() -> None:
    identifier = str(uuid.uuid4())
    request = RequestFactory().get(
        "/", headers={"X-Request-Id": identifier}, REMOTE_ADDR="10.0.0.9"
    )

    response = RequestIdMiddleware(_view)(request)

    assert response.content.decode() == f"{identifier} 10.0.0.9"
    assert response["X-Request-Id"] == identifier


def test_outside_of_a_request_they_are_not() -> None:
    RequestIdMiddleware(_view)(RequestFactory().get("/"))

    assert (request_id.current(), origin.current()) == ("", origin.Origin())


@pytest.mark.parametrize("given", ["", "abc", "x" * 36, "1" * 5000])
def test_an_id_that_is_none_is_replaced(given: str) -> None:
    request = RequestFactory().get("/", headers={"X-Request-Id": given})

    response = RequestIdMiddleware(_view)(request)

    assert uuid.UUID(response["X-Request-Id"])


def test_a_trusted_proxy_says_who_called() -> None:
    request = RequestFactory().get(
        "/", headers={"X-Forwarded-For": "203.0.113.7"}, REMOTE_ADDR="10.0.0.1"
    )

    with override_settings(TRUSTED_PROXIES=["10.0.0.0/8"]):
        response = RequestIdMiddleware(_view)(request)

    assert response.content.decode().endswith(" 203.0.113.7")
