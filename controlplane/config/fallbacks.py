"""Answers to what no view answers: problem documents below /api/, pages elsewhere."""

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from controlplane.api import errors, problems
from controlplane.common.errors import RequestError

API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    if request.path.startswith(API):
        return problems.plain_response(RequestError())
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    if request.path.startswith(API):
        return problems.plain_response(errors.NotFoundError())
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """500."""
    if request.path.startswith(API):
        return problems.plain_response(errors.InternalError())
    return defaults.server_error(request)
