"""Every error of the API as a problem document (RFC 9457).

A rule that said no (DomainError) brings its own code and words; what Django REST framework raises
gets its code from a table; anything else is a bug: it is logged and answered with its request id.
"""

import logging
from enum import Enum
from http import HTTPStatus
from typing import Any

from django.core import exceptions as django_exceptions
from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response

from controlplane.api import pointers
from controlplane.api.renderers import dump
from controlplane.common import request_id
from controlplane.common.errors import DomainError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
Problem = dict[str, Any]


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """The answer to an exception in a view; services roll back what they wrote."""
    problem = problem_of(error)
    if problem["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("Unexpected error in %s", context.get("view"), exc_info=error)
    return response(problem, headers=_headers(error, problem))


def problem_of(error: Exception) -> Problem:
    """The problem document of an exception."""
    if isinstance(error, DomainError):
        return of_domain_error(error)
    if isinstance(error, exceptions.ValidationError):
        return _validation(pointers.of_detail(error.detail))
    if isinstance(error, django_exceptions.ValidationError):
        return _validation(pointers.of_messages(error))
    if isinstance(error, Http404 | django_exceptions.ObjectDoesNotExist | exceptions.NotFound):
        return not_found()
    if isinstance(error, django_exceptions.PermissionDenied):
        error = exceptions.PermissionDenied()
    return _of_framework(error) if isinstance(error, exceptions.APIException) else internal_error()


def of_domain_error(error: DomainError) -> Problem:
    """Code and words of the error, its facts as members."""
    return _problem(
        error.code, error.status, title=str(error.title) or _("Not possible"),
        detail=str(error), hint=error.advice, **{k: _plain(v) for k, v in error.facts.items()},
    )  # fmt: skip


def not_found() -> Problem:
    """Also for objects of other tenants, so that their existence does not leak."""
    return _problem(
        "not-found", HTTPStatus.NOT_FOUND, title=_("Not found"),
        detail=_("There is no such object here, or you may not see it."),
        hint=_("Look at the id and at the list of the resource."),
    )  # fmt: skip


def internal_error() -> Problem:
    """Nothing but the id of the request; the log has the rest."""
    return _problem(
        "internal-error", HTTPStatus.INTERNAL_SERVER_ERROR, title=_("Unexpected error"),
        detail=_("The request failed for a reason that nobody foresaw."),
        hint=_("Tell the operators the id in 'instance'; it stands in their log."),
    )  # fmt: skip


def bad_request() -> Problem:
    """What Django refuses before a view sees it."""
    return _problem(
        "malformed-request", HTTPStatus.BAD_REQUEST, title=_("The request cannot be read"),
        detail=_("The request is malformed, or its host name is not one of this installation."),
        hint=_("Look at the host name, the headers and the body."),
    )  # fmt: skip


def response(problem: Problem, *, headers: dict[str, str] | None = None) -> Response:
    """The problem as an answer of Django REST framework."""
    return Response(
        problem, status=problem["status"], content_type=CONTENT_TYPE, headers=headers or {}
    )


def plain_response(problem: Problem) -> HttpResponse:
    """The problem as an answer of Django itself."""
    return HttpResponse(dump(problem), status=problem["status"], content_type=CONTENT_TYPE)


def _of_framework(error: exceptions.APIException) -> Problem:
    code, title, hint = _words(error)
    members = {}
    if isinstance(error, exceptions.Throttled):
        members["retry_after_seconds"] = getattr(error, "wait", None)
    return _problem(
        code, HTTPStatus(error.status_code), title=title, detail=_flat(error.detail), hint=hint,
        **members,
    )  # fmt: skip


def _words(error: exceptions.APIException) -> tuple[str, str, str]:
    table = {
        exceptions.NotAuthenticated: (
            "not-authenticated", _("Who are you?"),
            _("Send 'Authorization: Bearer' with an API token, or sign in to the console."),
        ),
        exceptions.AuthenticationFailed: (
            "not-authenticated", _("Who are you?"),
            _("Look at the token: it begins with cst_ and is shown once, when it is issued."),
        ),
        exceptions.PermissionDenied: (
            "not-permitted", _("Not permitted"), _("Ask somebody who may give you the permission."),
        ),
        exceptions.MethodNotAllowed: (
            "method-not-allowed", _("Not possible here"), _("The header Allow lists what is."),
        ),
        exceptions.NotAcceptable: (
            "not-acceptable", _("No such format"), _("The API answers in application/json."),
        ),
        exceptions.UnsupportedMediaType: (
            "unsupported-media-type", _("No such format"), _("Send application/json."),
        ),
        exceptions.Throttled: (
            "rate-limited", _("Too fast"), _("Wait as long as Retry-After says, then go on."),
        ),
        exceptions.ParseError: (
            "malformed-json", _("Not JSON"), _("Send one JSON value in UTF-8."),
        ),
    }  # fmt: skip
    for kind, words in table.items():
        if isinstance(error, kind):
            return words
    return "internal-error", _("Unexpected error"), ""


def _validation(errors: list[dict[str, str]]) -> Problem:
    return _problem(
        "validation-failed", HTTPStatus.UNPROCESSABLE_ENTITY,
        title=_("Some values are not allowed"), detail=" ".join(e["detail"] for e in errors),
        hint=_("Each entry of 'errors' points at a value and says what is allowed."), errors=errors,
    )  # fmt: skip


def _problem(
    code: str, status: HTTPStatus, *, title: str, detail: str, hint: str, **members: Any
) -> Problem:
    return members | {
        "type": f"/problems/{code}",
        "code": code,
        "title": title,
        "status": int(status),
        "detail": detail,
        "hint": hint,
        "instance": f"urn:uuid:{request_id.current()}",
    }


def _headers(error: Exception, problem: Problem) -> dict[str, str]:
    headers = {}
    if problem["status"] == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after_seconds" in problem:
        headers["Retry-After"] = str(max(1, int(problem["retry_after_seconds"] or 1)))
    return headers


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        # Its text for people stands in `detail`.
        return _plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return str(value)


def _flat(detail: Any) -> str:
    return " ".join(map(str, detail)) if isinstance(detail, list) else str(detail)
