"""JSON out: UTF-8, decimals as strings, times in UTC with Z."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson
from django.utils.functional import Promise
from rest_framework.renderers import BaseRenderer

_FORMS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (date, date.isoformat),
    (Decimal, lambda value: format(value, "f")),
    (Promise, str),
    (dict, dict),
    (list, list),
    (tuple, list),
    (set, list),
    (frozenset, list),
    (Enum, lambda value: value.value),
)
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


class JSONRenderer(BaseRenderer):
    """The only format of the API."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Any = None,
    ) -> bytes:
        """Bytes of `data`; nothing for an answer without a body."""
        return b"" if data is None else dump(data)


def dump(value: Any) -> bytes:
    """JSON of plain values, serializer results, lazy texts, decimals and times."""
    return orjson.dumps(value, default=_plain, option=_OPTIONS)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        # A naive time raises: it has no meaning on the wire.
        if value.tzinfo is None:
            raise TypeError(f"{value!r} has no time zone; the API answers in UTC only.")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON.")
