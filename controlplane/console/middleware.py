"""Turns a rule that said no into a page: title, detail, hint and code."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from controlplane.common.errors import DomainError


class ProblemPageMiddleware:
    """Answer a DomainError that a console view let through; the API has its own answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The problem page with the error's status; None for what is not a DomainError."""
        if not isinstance(exception, DomainError):
            return None
        context = {
            "heading": str(exception.title) or str(exception),
            "detail": str(exception),
            "hint": str(exception.hint).format(**exception.facts),
            "code": exception.code,
            "problem_icon": "lock" if exception.status == 403 else "bad",
        }
        return render(request, "console/problem.html", context, status=exception.status)
