"""Errors of an engine in vLLM's form, and members of a body by their type."""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """A request was refused; `body()` is what vLLM's server would answer."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "BadRequestError", param: str | None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> dict[str, Any]:
        """The error document."""
        return {
            "error": {
                "message": str(self),
                "type": self.kind,
                "param": self.param,
                "code": self.status,
            }
        }


def number(body: Mapping[str, Any], name: str) -> int | None:
    """A whole number, `None` when it is absent. Raises ApiError."""
    value = body.get(name)
    # In Python a truth value is a number as well; in JSON it is not.
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise type_error("int_type", f"body.{name}", "Input should be a valid integer", value)


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A truth value, false when it is absent. Raises ApiError."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise type_error("bool_type", f"body.{name}", "Input should be a valid boolean", value)


def text(body: Mapping[str, Any], name: str) -> str | None:
    """A text, `None` when it is absent. Raises ApiError."""
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise type_error("string_type", f"body.{name}", "Input should be a valid string", value)


def mapping(body: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """An object, `None` when it is absent. Raises ApiError."""
    value = body.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise type_error("dict_type", f"body.{name}", "Input should be a valid dictionary", value)


def type_error(kind: str, where: str, message: str, value: object) -> ApiError:
    """The error of a member that has another type."""
    shown = repr(value)[:200]
    told = (
        f"1 validation error:\n  {{'type': '{kind}', 'loc': '{where}', 'msg': '{message}', "
        f"'input': {shown}}}"
    )
    return ApiError(told, kind="Bad Request", param=where)
