"""What the API server says when it refuses: always a `Status` object."""

from typing import Any

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiError(Exception):
    """A refusal: HTTP status, reason, message, causes, and seconds after which to ask again."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.reason = REASONS.get(status, "") if reason is None else reason
        self.details = dict(details or {})
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The Status object, as on the wire."""
        details = dict(self.details)
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.status,
        }
        return {key: value for key, value in status.items() if value or key == "metadata"}


def not_found(resource: str, group: str, name: str) -> ApiError:
    """The object is not there."""
    shown = f"{resource}.{group}" if group else resource
    details = {"name": name, "group": group, "kind": resource}
    return ApiError(404, f'{shown} "{name}" not found', details=_filled(details))


def already_exists(resource: str, group: str, name: str) -> ApiError:
    """A create met an object of that name."""
    shown = f"{resource}.{group}" if group else resource
    details = {"name": name, "group": group, "kind": resource}
    return ApiError(
        409, f'{shown} "{name}" already exists', reason="AlreadyExists", details=_filled(details)
    )


def invalid(kind: str, group: str, name: str, causes: list[dict[str, str]]) -> ApiError:
    """Validation said no; each cause has reason, message and field."""
    said = [f"{cause['field']}: {cause['message']}" for cause in causes]
    text = said[0] if len(said) == 1 else "[" + ", ".join(said) + "]"
    shown = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind, "causes": causes}
    return ApiError(422, f'{shown} "{name}" is invalid: {text}', details=_filled(details))


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> dict[str, str]:
    """One cause of an `invalid` answer."""
    return {"reason": reason, "message": message, "field": field}


def forbidden(resource: str, group: str, name: str, why: str, **details: Any) -> ApiError:
    """Rights, quotas, admission and terminating namespaces all answer like this."""
    shown = f"{resource}.{group}" if group else resource
    facts = {"name": name, "group": group, "kind": resource} | details
    return ApiError(403, f'{shown} "{name}" is forbidden: {why}', details=_filled(facts))


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    """A stale resourceVersion or a precondition that does not hold."""
    shown = f"{resource}.{group}" if group else resource
    details = {"name": name, "group": group, "kind": resource}
    message = f'Operation cannot be fulfilled on {shown} "{name}": {why}'
    return ApiError(409, message, details=_filled(details))


def field_conflict(conflicts: list[tuple[str, str]]) -> ApiError:
    """An apply met fields of others: (who, field) pairs."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": field}
        for who, field in conflicts
    ]
    if len(conflicts) == 1:
        [(who, field)] = conflicts
        message = f"Apply failed with 1 conflict: conflict with {who}: {field}"
        return ApiError(409, message, details={"causes": causes})
    lines = []
    for manager in sorted({who for who, _ in conflicts}):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {field}" for who, field in conflicts if who == manager]
    message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return ApiError(409, message, details={"causes": causes})


def expired(message: str) -> ApiError:
    """A resourceVersion or continue token is too old."""
    return ApiError(410, message)


def _filled(details: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in details.items() if value}
