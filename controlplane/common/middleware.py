"""Gives every request an id and an origin that stand in logs, audit entries and problems."""

import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from controlplane.common import origin, request_id
from controlplane.common.addresses import client_address


class RequestIdMiddleware:
    """Take over the caller's X-Request-Id if it is a UUID, else make one; answer with it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        identifier = given if _is_uuid(given) else str(uuid.uuid4())
        request.request_id = identifier  # type: ignore[attr-defined]  # ConsoleRequest has it
        with request_id.bound(identifier), origin.bound(_origin(request)):
            response = self.get_response(request)
        response["X-Request-Id"] = identifier
        return response


def _origin(request: HttpRequest) -> origin.Origin:
    address = client_address(
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("X-Forwarded-For", ""),
        trusted=settings.TRUSTED_PROXIES,
    )
    return origin.Origin(kind="system", auth_method="", address=address)


def _is_uuid(text: str) -> bool:
    try:
        return len(text) == 36 and bool(uuid.UUID(text))
    except ValueError:
        return False
