"""Page or fragment."""

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django_htmx.middleware import HtmxMiddleware

from controlplane.common.http import wants_fragment


@pytest.mark.parametrize(
    ("headers", "fragment"),
    [
        ({}, False),
        ({"HX-Request": "true"}, True),
        ({"HX-Request": "true", "HX-Boosted": "true"}, False),
        ({"HX-Request": "true", "HX-History-Restore-Request": "true"}, False),
    ],
)
def test_htmx_asks_for_a_part_of_the_page(headers: dict[str, str], fragment: object) -> None:
    request = RequestFactory().get("/", headers=headers)
    HtmxMiddleware(lambda _request: HttpResponse())(request)

    assert wants_fragment(request) is fragment
