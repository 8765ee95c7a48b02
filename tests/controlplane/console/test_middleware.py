"""A rule that said no becomes a page; other errors stay errors."""

from collections.abc import Callable

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from controlplane.console.middleware import ProblemPageMiddleware
from tests.controlplane.console.scene import Scene


def test_a_denial_is_a_page_with_status_code_and_who_may(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    response = client_of(scene.tenant_user).get("/cost")
    text = response.content.decode()

    assert response.status_code == 403
    assert "<code>not-permitted</code>" in text
    assert "Roles that have it:" in text
    assert response["X-Request-Id"] in text


@pytest.mark.parametrize(
    "address",
    [
        "/fleet/nodes?vendor=a%00b",
        "/routing/decisions?pool=%00",
        "/audit?q=%00",
        "/?%00=1",
        "/search?q=%00",
    ],
)
def test_nul_in_an_address_is_refused_in_a_sentence(
    scene: Scene, client_of: Callable[..., Client], address: str
) -> None:
    response = client_of(scene.operator).get(address)

    assert response.status_code == 400
    assert "U+0000" in response.content.decode()


@pytest.mark.parametrize("name", ["note", "no\0te"])
def test_nul_in_what_is_posted_is_refused_in_a_sentence(
    scene: Scene, client_of: Callable[..., Client], name: str
) -> None:
    response = client_of(scene.operator).post(
        f"/serving/changes/{scene.applying.pk}/cancel", {name: "fans\0fail"}
    )

    scene.applying.refresh_from_db()
    assert response.status_code == 400
    assert "U+0000" in response.content.decode()
    assert scene.applying.state == "applying"


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("y")])
def test_other_errors_are_left_alone(error: Exception) -> None:
    middleware = ProblemPageMiddleware(lambda _request: HttpResponse())

    assert middleware.process_exception(RequestFactory().get("/"), error) is None
