"""Errors that belong to the API as such and to no single app.

DomainError
├── RequestError: the request cannot be read (400)
│   ├── MalformedJsonError, InvalidCursorError, InvalidHeaderError, UnknownParameterError
│   └── IdempotencyKeyRequiredError, IdempotencyKeyMalformedError
├── TokenError: TokenExpiredError, TokenRevokedError (401)
├── NotFoundError (404), MethodNotAllowedError (405), NotAcceptableError (406)
├── UnsupportedMediaTypeError (415), ValidationFailedError (422), TooFastError (429)
├── ForbiddenError (403), InternalError (500)
├── CsrfFailedError (403), BodyTooLargeError (413)
├── NameNotUniqueError (409), IdempotencyInProgressError (409), IdempotencyKeyReusedError (422)
└── VersionMismatchError (412), IfMatchRequiredError (428)
"""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError, RequestError


class MalformedJsonError(RequestError):
    code = "malformed-json"
    title = _("Not JSON")
    message = _("The body is not JSON that can be read: {why}.")
    hint = _("Send one JSON value in UTF-8, at most 64 levels deep, no member twice.")


class UnknownParameterError(RequestError):
    code = "unknown-parameter"
    title = _("Unknown parameter")
    message = _("This resource has no parameter '{parameter}'.{suggestion}")
    hint = _("Allowed here: {allowed}.")


class InvalidCursorError(RequestError):
    code = "invalid-cursor"
    title = _("This cursor does not fit")
    message = _("The cursor is damaged, or belongs to a list with other filters or another order.")
    hint = _("Start again without a cursor, or follow 'next' with the parameters unchanged.")


class InvalidHeaderError(RequestError):
    code = "invalid-header"
    title = _("A header cannot be read")
    message = _("The header {header} has the value '{value}', which cannot be read.")
    hint = _("Expected: {expected}.")


class IdempotencyKeyRequiredError(RequestError):
    code = "idempotency-key-required"
    title = _("Idempotency-Key is missing")
    message = _("This request creates or starts something and has no Idempotency-Key.")
    hint = _("Send the header Idempotency-Key with a value of your own, the same on every retry.")


class IdempotencyKeyMalformedError(RequestError):
    code = "idempotency-key-malformed"
    title = _("Idempotency-Key cannot be used")
    message = _("The Idempotency-Key '{value}' cannot be used.")
    hint = _("Use 8 to 128 characters of A to Z, a to z, 0 to 9, '.', '_', '~' and '-'.")


class IdempotencyInProgressError(DomainError):
    code = "idempotency-in-progress"
    title = _("The first request is still at work")
    message = _("A request with this Idempotency-Key is at work.")
    hint = _("Ask again after the time in Retry-After; the answer will be the same.")


class IdempotencyKeyReusedError(DomainError):
    code = "idempotency-key-reused"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Idempotency-Key was used for another request")
    message = _("This Idempotency-Key belongs to another request of yours.")
    hint = _("Send another key for another request.")


class TokenError(DomainError):
    """There is no credential, or it is not known or of no use."""

    code = "not-authenticated"
    status = HTTPStatus.UNAUTHORIZED
    title = _("Who are you?")
    message = _("The request has no credential that is known here.")
    hint = _("Send 'Authorization: Bearer' with an API token (cst_…), or sign in to the console.")


class TokenExpiredError(TokenError):
    code = "token-expired"
    title = _("The token has expired")
    message = _("The token {prefix} has expired.")
    hint = _("Issue another one and revoke this one.")


class TokenRevokedError(TokenError):
    code = "token-revoked"
    title = _("The token is revoked")
    message = _("The token {prefix} was revoked.")
    hint = _("Issue another one if the machine may go on.")


class TokenNetworkError(TokenError):
    code = "token-network"
    title = _("The token does not work from here")
    message = _("The token {prefix} does not work from the address {address}.")
    hint = _("Call from a network that the token allows, or issue another token.")


class CsrfFailedError(DomainError):
    code = "csrf-failed"
    status = HTTPStatus.FORBIDDEN
    title = _("The request may come from another site")
    message = _("A write with a session needs the CSRF token, which is missing or wrong.")
    hint = _("Send the header X-CSRFToken with the value of the cookie, or use an API token.")


class BodyTooLargeError(DomainError):
    code = "body-too-large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    title = _("The body is too large")
    message = _("The body is larger than {limit_bytes} bytes.")
    hint = _("Send less at once; imports have a larger limit.")


class VersionMismatchError(DomainError):
    code = "version-mismatch"
    status = HTTPStatus.PRECONDITION_FAILED
    title = _("Somebody was faster")
    message = _("The object has changed since it was read.")
    hint = _("Read it again, look at the difference, send the change with the tag it has then.")


class IfMatchRequiredError(DomainError):
    code = "if-match-required"
    status = HTTPStatus.PRECONDITION_REQUIRED
    title = _("If-Match is missing")
    message = _("A change of this object must say which version it was made for.")
    hint = _("Send the header If-Match with the ETag of the last read; '*' is not accepted.")


class NotFoundError(DomainError):
    """Also for objects of other tenants, so that their existence does not leak."""

    code = "not-found"
    status = HTTPStatus.NOT_FOUND
    title = _("Not found")
    message = _("There is no such object here, or you may not see it.")
    hint = _("Look at the id and at the list of the resource.")


class NameNotUniqueError(DomainError):
    code = "name-not-unique"
    title = _("Several objects have this name")
    message = _("{name} is the name of several objects: {ids}.")
    hint = _("Name the one that is meant by its id.")


class ForbiddenError(DomainError):
    code = "forbidden"
    status = HTTPStatus.FORBIDDEN
    title = _("Not permitted")
    message = _("You may not do this.")
    hint = _("Ask somebody who may give you the permission.")


class MethodNotAllowedError(DomainError):
    code = "method-not-allowed"
    status = HTTPStatus.METHOD_NOT_ALLOWED
    title = _("Not possible here")
    message = _("This address does not offer the method of the request.")
    hint = _("The header Allow lists what it offers.")


class NotAcceptableError(DomainError):
    code = "not-acceptable"
    status = HTTPStatus.NOT_ACCEPTABLE
    title = _("No such format")
    message = _("The answer is not offered in a format that the header Accept allows.")
    hint = _("The API answers in application/json.")


class UnsupportedMediaTypeError(DomainError):
    code = "unsupported-media-type"
    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    title = _("No such format")
    message = _("The body is in a format that cannot be read here.")
    hint = _("Allowed: {allowed}.")


class TooFastError(DomainError):
    code = "rate-limited"
    status = HTTPStatus.TOO_MANY_REQUESTS
    title = _("Too fast")
    message = _("There were more requests than this credential may send.")
    hint = _("Wait for {retry_after_seconds} seconds, then go on.")


class ValidationFailedError(DomainError):
    code = "validation-failed"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Some values are not allowed")
    message = "{sentences}"
    hint = _("Each entry of 'errors' points at a value and says what is allowed.")


class InternalError(DomainError):
    code = "internal-error"
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    title = _("Unexpected error")
    message = _("The request failed for a reason that nobody foresaw.")
    hint = _("Tell the operators the id in 'instance'; it stands in their log.")
