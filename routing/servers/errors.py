"""Error answers: each inference API has its own form, the admin port gives plain problems."""

from typing import Any

import msgspec

from routing.core.decision import Refusal

_TYPES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    405: "BadRequestError",
    408: "BadRequestError",
    412: "PreconditionFailedError",
    413: "BadRequestError",
    415: "BadRequestError",
    429: "RateLimitError",
    431: "BadRequestError",
    502: "UpstreamError",
    503: "ServiceUnavailableError",
    504: "UpstreamError",
}

MESSAGES_PATH, RESPONSES_PATH = "/v1/messages", "/v1/responses"
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class ApiError(Exception):
    """An answer other than 200 that the router itself gives to a client."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | int | None = None,
        param: str | None = None,
        type: str | None = None,  # noqa: A002 - the wire name
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = status if code is None else code
        self.param = param
        self.type = type or _TYPES.get(status, "InternalServerError")
        self.retry_after_seconds = retry_after_seconds
        self.dropped_reason: str | None = None
        self.is_counted = False
        """The account of an attempt counts this answer."""

    @classmethod
    def of(cls, refusal: Refusal) -> "ApiError":
        """The answer to a refused request, whose attempt has an account of its own."""
        error = cls(
            refusal.status,
            refusal.message,
            code=refusal.code,
            retry_after_seconds=refusal.retry_after_seconds,
        )
        error.dropped_reason, error.is_counted = refusal.dropped_reason, True
        return error

    def body(self, path: str = "") -> bytes:
        """The error object in the form of the API at a path: Anthropic's, or OpenAI's."""
        if path.startswith(MESSAGES_PATH):
            kind = "invalid_request_error" if self.status < 500 else "api_error"
            kind = _ANTHROPIC_TYPES.get(self.status, kind)
            told = {"type": kind, "message": self.message, "code": self.code}
            return msgspec.json.encode({"type": "error", "error": told})
        return msgspec.json.encode({"error": self._facts()})

    def event(self, path: str = "") -> bytes:
        """The same as an event, for a stream that has begun."""
        if path.startswith(MESSAGES_PATH):
            return b"event: error\ndata: %b\n\n" % self.body(path)
        if path.startswith(RESPONSES_PATH):
            told = msgspec.json.encode(self._facts() | {"type": "error"})
            return b"event: error\ndata: %b\n\n" % told
        return b"data: %b\n\n" % self.body()

    def _facts(self) -> dict[str, Any]:
        return {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }

    def header_lines(self) -> bytes:
        """`retry-after` in whole seconds, at least 1, when the wait is known; llm-d's reason."""
        lines = b""
        if self.retry_after_seconds is not None:
            lines = b"retry-after: %d\r\n" % max(1, round(self.retry_after_seconds + 0.5))
        if self.dropped_reason is not None:
            lines += b"x-llm-d-request-dropped-reason: %b\r\n" % self.dropped_reason.encode()
        return lines


def openai_error_body(status: int, message: str) -> bytes:
    """Body of an error that the HTTP server itself reports."""
    return ApiError(status, message).body()


def problem_body(status: int, message: str) -> bytes:
    """Body of an error on the admin port."""
    return problem("bad-request" if status < 500 else "internal-error", message)


def problem(code: str, detail: str, **facts: Any) -> bytes:
    """A problem with a code, a sentence and facts."""
    return msgspec.json.encode({"code": code, "detail": detail, **facts})
