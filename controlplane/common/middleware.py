"""Gives every request an id that stands in logs, audit entries and problem documents."""

import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from controlplane.common import request_id


class RequestIdMiddleware:
    """Take over the caller's X-Request-Id if it is a UUID, else make one; answer with it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        identifier = given if _is_uuid(given) else str(uuid.uuid4())
        request.request_id = identifier  # type: ignore[attr-defined]  # ConsoleRequest has it
        with request_id.bound(identifier):
            response = self.get_response(request)
        response["X-Request-Id"] = identifier
        return response


def _is_uuid(text: str) -> bool:
    try:
        return len(text) == 36 and bool(uuid.UUID(text))
    except ValueError:
        return False
