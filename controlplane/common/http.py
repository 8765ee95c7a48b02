"""Types and small rules of requests, shared by console and API."""

from typing import TYPE_CHECKING

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails
from rest_framework.request import Request

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


class ConsoleRequest(HttpRequest):
    """A console request of a signed-in person."""

    # The login decorator ruled out anonymous.
    user: "User"
    htmx: HtmxDetails
    request_id: str


class ApiRequest(Request):
    """An API request of a person or a machine."""

    user: "User"
    request_id: str


def wants_fragment(request: HttpRequest) -> bool:
    """True if htmx asks for a part of the page, not for the page."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # set by the middleware
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request
