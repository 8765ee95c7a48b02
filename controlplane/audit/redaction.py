"""What may stand in an audit entry: only what changed, no secrets, nothing huge."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

SECRET_WORDS = ("secret", "password", "token", "salt", "digest", "private")
LIMIT_BYTES = 64 * 1024

Values = Mapping[str, Any] | None


def changed(before: Values, after: Values) -> tuple[Values, Values]:
    """Both sides without the fields that are equal; a side that is None stays None."""
    if before is None or after is None:
        return before, after
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    keys.sort()
    return (
        {key: before[key] for key in keys if key in before},
        {key: after[key] for key in keys if key in after},
    )


def safe(values: Values) -> Any:
    """Plain JSON values; a field whose name says secret becomes 64 bits of its hash.

    Fractions become text, since the chain's canonical form has whole numbers only.
    """
    if values is None:
        return None
    plain = json.loads(json.dumps(_hidden(values), cls=_Encoder), parse_float=str)
    text = json.dumps(plain, sort_keys=True)
    if len(text) > LIMIT_BYTES:
        return {"cut": True, "bytes": len(text), "sha256": _sha256(text)}
    return plain


class _Encoder(DjangoJSONEncoder):
    """What Django cannot write stands as its text."""

    def default(self, o: Any) -> Any:
        try:
            return super().default(o)
        except TypeError:
            return str(o)


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            _storable(str(key)): _redacted(inner) if _is_secret(str(key)) else _hidden(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_hidden(inner) for inner in value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _storable(value)
    return value


def _storable(text: str) -> str:
    """PostgreSQL's JSON holds neither NUL nor half of a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _is_secret(name: str) -> bool:
    return any(word in name.lower().split("_") for word in SECRET_WORDS)


def _redacted(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    return {"redacted": True, "sha256_16": _sha256(text)[:16]}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
