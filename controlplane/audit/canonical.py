"""Bytes and hashes of the chain; plain functions, so that a verifier elsewhere can do the same.

RFC 8785 canonical JSON: keys sorted by UTF-16 code units, no blanks, strings with the shortest
escapes. Entries hold no floats, so its rules for numbers are not needed: floats are refused.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

PREAMBLE = b"consort-audit-v1"
FIRST_PREVIOUS = bytes(32)
"""`prev_hash` of the link with seq 1."""


def canonical(value: Any) -> bytes:
    """RFC 8785 form of strings, whole numbers, booleans, null, lists and objects."""
    return _text(value).encode("utf-8", "surrogatepass")


def entry_hash(content: Mapping[str, Any]) -> bytes:
    """SHA-256 of an entry in canonical form."""
    return hashlib.sha256(canonical(content)).digest()


def link_hash(*, seq: int, prev_hash: bytes, entry_hash: bytes) -> bytes:
    """SHA-256(preamble, seq as 8 bytes big-endian, hash of the link before, hash of the entry)."""
    parts = PREAMBLE + seq.to_bytes(8, "big") + prev_hash + entry_hash
    return hashlib.sha256(parts).digest()


def _text(value: Any) -> str:
    if isinstance(value, float):
        raise TypeError(f"{value!r}: an audit entry holds no floats; write it as text.")
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_text(key)}:{_text(value[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
