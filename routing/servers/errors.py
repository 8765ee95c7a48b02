"""Error answers: OpenAI's form on the inference API, plain problems on the admin port."""

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
    413: "BadRequestError",
    415: "BadRequestError",
    429: "RateLimitError",
    431: "BadRequestError",
    502: "UpstreamError",
    503: "ServiceUnavailableError",
    504: "UpstreamError",
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

    @classmethod
    def of(cls, refusal: Refusal) -> "ApiError":
        """The answer to a refused request."""
        return cls(
            refusal.status,
            refusal.message,
            code=refusal.code,
            retry_after_seconds=refusal.retry_after_seconds,
        )

    def body(self) -> bytes:
        """The JSON object `{"error": {...}}`."""
        error = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return msgspec.json.encode({"error": error})

    def event(self) -> bytes:
        """The same as an event, for a stream that has begun."""
        return b"data: %b\n\n" % self.body()

    def header_lines(self) -> bytes:
        """`retry-after` in whole seconds, at least 1, when the wait is known."""
        if self.retry_after_seconds is None:
            return b""
        return b"retry-after: %d\r\n" % max(1, round(self.retry_after_seconds + 0.5))


def openai_error_body(status: int, message: str) -> bytes:
    """Body of an error that the HTTP server itself reports."""
    return ApiError(status, message).body()


def problem_body(status: int, message: str) -> bytes:
    """Body of an error on the admin port."""
    return problem("bad-request" if status < 500 else "internal-error", message)


def problem(code: str, detail: str, **facts: Any) -> bytes:
    """A problem with a code, a sentence and facts."""
    return msgspec.json.encode({"code": code, "detail": detail, **facts})
