"""Answers to what no view answers."""

import pytest
from django.core.exceptions import SuspiciousOperation
from django.test import RequestFactory

from controlplane.config import fallbacks


@pytest.mark.parametrize(
    ("name", "arguments", "status", "code"),
    [
        ("bad_request", (SuspiciousOperation(),), 400, "malformed-request"),
        ("not_found", (Exception(),), 404, "not-found"),
        ("server_error", (), 500, "internal-error"),
    ],
)
def test_below_the_api_every_answer_is_a_problem(
    name: str, arguments: tuple[object, ...], status: int, code: str
) -> None:
    response = getattr(fallbacks, name)(RequestFactory().get("/api/v1/x"), *arguments)

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert f'"code":"{code}"' in response.content.decode()


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [("bad_request", (SuspiciousOperation(),), 400), ("server_error", (), 500)],
)
def test_elsewhere_it_is_a_page(name: str, arguments: tuple[object, ...], status: int) -> None:
    response = getattr(fallbacks, name)(RequestFactory().get("/fleet"), *arguments)

    assert response.status_code == status
    assert response["Content-Type"].startswith("text/html")
