"""Turns a rule that said no into a page: title, detail, hint and code."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from controlplane.common.errors import DomainError, InvalidParameterError

API = "/api/"
"""Has its own answer to a query that cannot be read."""


class ProblemPageMiddleware:
    """Answer a DomainError that a console view let through; the API has its own answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _args: Any, _named: Any
    ) -> HttpResponse | None:
        """Refuse NUL in what was sent to a page: PostgreSQL holds none, so it would be a 500."""
        if request.path.startswith(API):
            return None
        for name, values in (*request.GET.lists(), *request.POST.lists()):
            if any("\0" in text for text in (name, *values)):
                return self._page(request, _nul_in(name))
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The problem page with the error's status; None for what is not a DomainError."""
        if not isinstance(exception, DomainError):
            return None
        return self._page(request, exception)

    def _page(self, request: HttpRequest, exception: DomainError) -> HttpResponse:
        context = {
            "heading": str(exception.title) or str(exception),
            "detail": str(exception),
            "hint": str(exception.hint).format(**exception.facts),
            "code": exception.code,
            "problem_icon": "lock" if exception.status == 403 else "bad",
        }
        return render(request, "console/problem.html", context, status=exception.status)


def _nul_in(parameter: str) -> InvalidParameterError:
    return InvalidParameterError(
        parameter=parameter.replace("\0", ""), value="\\0",
        allowed=_("text without the character U+0000"),
    )  # fmt: skip
