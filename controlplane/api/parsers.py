"""JSON in: what is too large, too deep, there twice or not to be stored is refused at once."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.parsers import BaseParser

from controlplane.api.errors import BodyTooLargeError, MalformedJsonError

MAX_DEPTH = 64
LARGEST_INTEGER = 2**63 - 1
"""64 bits with a sign: what the database and other readers of JSON can hold."""
_MOST_DIGITS = 20


class JSONParser(BaseParser):
    """`application/json`: at most API_BODY_LIMIT bytes, 64 levels, no member twice."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value of the body; an empty body is an empty object."""
        limit = settings.API_BODY_LIMIT
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLargeError(limit_bytes=limit)
        return load(body) if body.strip() else {}


class MergePatchParser(JSONParser):
    """RFC 7396; means the same as JSON in a PATCH."""

    media_type = "application/merge-patch+json"


def load(body: bytes) -> Any:
    """Value of a JSON text; raises MalformedJsonError that says where it breaks."""
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_object_without_doubles, parse_constant=_no_constant,
            parse_int=_integer, parse_float=_fraction,
        )  # fmt: skip
    except UnicodeDecodeError as error:
        raise MalformedJsonError(why=_("the body is not UTF-8")) from error
    except RecursionError as error:
        raise MalformedJsonError(why=_too_deep()) from error
    except json.JSONDecodeError as error:
        where = _("line {line}, column {column}: {what}").format(
            line=error.lineno, column=error.colno, what=error.msg
        )
        raise MalformedJsonError(why=where) from error
    if _depth(value) > MAX_DEPTH:
        raise MalformedJsonError(why=_too_deep())
    _refuse_unstorable(body, value)
    return value


def _too_deep() -> str:
    return _("it is nested deeper than {limit} levels").format(limit=MAX_DEPTH)


def _no_constant(name: str) -> Any:
    raise MalformedJsonError(why=_("{name} is not a JSON number").format(name=name))


def _integer(text: str) -> int:
    # Digits are counted first: Python refuses to read more than some thousand of them.
    if len(text) > _MOST_DIGITS or abs(int(text)) > LARGEST_INTEGER:
        raise MalformedJsonError(why=_("a whole number has more than 64 bits"))
    return int(text)


def _fraction(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedJsonError(why=_("{name} is not a JSON number").format(name=text[:40]))
    return value


def _refuse_unstorable(body: bytes, value: Any) -> None:
    """Refuse NUL and half of a surrogate pair, which no text column and no answer can hold.

    Both can only come as escapes, so most bodies are not walked through.
    """
    if b"\\u" not in body:
        return
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str) and not _is_storable(part):
            raise MalformedJsonError(why=_("a text holds \\u0000 or half of a surrogate pair"))


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _object_without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _value in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise MalformedJsonError(why=_("the member '{name}' stands twice").format(name=double))
    return value


def _depth(value: Any) -> int:
    """Levels of nesting, counted without recursion."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        part, level = waiting.pop()
        if isinstance(part, dict | list):
            deepest = max(deepest, level)
            children = part.values() if isinstance(part, dict) else part
            waiting.extend((child, level + 1) for child in children)
    return deepest
