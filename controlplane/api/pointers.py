"""Locates faults in a body: nested error details become a flat list with JSON pointers."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from rest_framework.settings import api_settings

Faults = list[dict[str, str]]


def of_detail(detail: Any) -> Faults:
    """Faults of a Django REST framework ValidationError, in the order of the members."""
    return list(_walk(detail, "#"))


def of_messages(error: ValidationError) -> Faults:
    """Faults of a Django ValidationError, as models raise it."""
    if not hasattr(error, "error_dict"):
        return [_fault("#", part) for part in error.error_list]
    return [
        _fault("#" if name == NON_FIELD_ERRORS else f"#/{_escaped(name)}", part)
        for name, parts in error.error_dict.items()
        for part in parts
    ]


def _walk(detail: Any, pointer: str) -> Iterator[dict[str, str]]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            whole = name == api_settings.NON_FIELD_ERRORS_KEY
            yield from _walk(inner, pointer if whole else f"{pointer}/{_escaped(str(name))}")
    elif isinstance(detail, list):
        nested = any(isinstance(part, dict | list) for part in detail)
        for index, part in enumerate(detail):
            yield from _walk(part, f"{pointer}/{index}" if nested else pointer)
    else:
        code = getattr(detail, "code", "invalid")
        yield {"pointer": pointer, "code": str(code), "detail": str(detail)}


def _fault(pointer: str, error: ValidationError) -> dict[str, str]:
    return {
        "pointer": pointer, "code": error.code or "invalid", "detail": " ".join(error.messages)
    }  # fmt: skip


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
