"""Every error of the API as a problem document (RFC 9457).

A rule that said no (DomainError) brings its own code and words; what Django REST framework raises
gets its code from a table; anything else is a bug: it is logged and answered with its request id.
"""

import logging
import math
from enum import Enum
from http import HTTPStatus
from typing import Any

from django.core import exceptions as django_exceptions
from django.http import Http404, HttpResponse
from rest_framework import exceptions
from rest_framework.response import Response

from controlplane.api import errors, pointers
from controlplane.api.renderers import dump
from controlplane.common import request_id
from controlplane.common.errors import DomainError, RequestError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
MOST_SENTENCES = 5
"""How many faults `detail` tells; `errors` has them all."""
_TRANSLATIONS: tuple[tuple[type[Exception], type[DomainError]], ...] = (
    (Http404, errors.NotFoundError),
    (django_exceptions.ObjectDoesNotExist, errors.NotFoundError),
    (exceptions.NotFound, errors.NotFoundError),
    (exceptions.NotAuthenticated, errors.TokenError),
    (exceptions.AuthenticationFailed, errors.TokenError),
    (exceptions.PermissionDenied, errors.ForbiddenError),
    (django_exceptions.PermissionDenied, errors.ForbiddenError),
    (exceptions.MethodNotAllowed, errors.MethodNotAllowedError),
    (exceptions.NotAcceptable, errors.NotAcceptableError),
    (exceptions.ParseError, RequestError),
    (django_exceptions.BadRequest, RequestError),
    (django_exceptions.SuspiciousOperation, RequestError),
)
Problem = dict[str, Any]


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """The answer to an exception in a view; services roll back what they wrote."""
    if isinstance(error, exceptions.UnsupportedMediaType):
        error = errors.UnsupportedMediaTypeError(allowed=_media_types(context.get("view")))
    problem = problem_of(error)
    if problem["status"] == HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("Unexpected error in %s", context.get("view"), exc_info=error)
    return response(problem, headers=_headers(problem))


def problem_of(error: Exception) -> Problem:
    """The problem document of an exception."""
    return of_domain_error(error if isinstance(error, DomainError) else _translated(error))


def of_domain_error(error: DomainError) -> Problem:
    """Code and words of the error, its facts as members."""
    facts = {name: _plain(value) for name, value in error.facts.items() if name != "sentences"}
    return facts | {
        "type": f"/problems/{error.code}",
        "code": error.code,
        "title": str(error.title),
        "status": int(error.status),
        "detail": str(error),
        "hint": error.advice,
        "instance": f"urn:uuid:{request_id.current()}",
    }


def response(problem: Problem, *, headers: dict[str, str] | None = None) -> Response:
    """The problem as an answer of Django REST framework."""
    return Response(
        problem, status=problem["status"], content_type=CONTENT_TYPE, headers=headers or {}
    )


def plain_response(error: DomainError) -> HttpResponse:
    """The error as an answer of Django itself."""
    problem = of_domain_error(error)
    return HttpResponse(dump(problem), status=problem["status"], content_type=CONTENT_TYPE)


def _translated(error: Exception) -> DomainError:
    """Our error for what Django and Django REST framework raise."""
    if isinstance(error, exceptions.ValidationError):
        return _validation(pointers.of_detail(error.detail))
    if isinstance(error, django_exceptions.ValidationError):
        return _validation(pointers.of_messages(error))
    if isinstance(error, exceptions.Throttled):
        return errors.TooFastError(retry_after_seconds=math.ceil(getattr(error, "wait", None) or 1))
    for kind, translation in _TRANSLATIONS:
        if isinstance(error, kind):
            return translation()
    return errors.InternalError()


def _located(fault: dict[str, str]) -> str:
    """The sentence of a fault with the member that it is about."""
    member = fault["pointer"].removeprefix("#").removeprefix("/")
    return f"{member}: {fault['detail']}" if member else fault["detail"]


def _media_types(view: Any) -> str:
    """Formats that the view reads."""
    return ", ".join(parser.media_type for parser in view.get_parsers())


def _validation(faults: pointers.Faults) -> DomainError:
    sentences = " ".join(map(_located, faults[:MOST_SENTENCES]))
    return errors.ValidationFailedError(errors=faults, sentences=sentences)


def _headers(problem: Problem) -> dict[str, str]:
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
