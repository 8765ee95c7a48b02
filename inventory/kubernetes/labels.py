"""Labels, annotations and names of what we create in a cluster.

Label values and object names may have 63 characters of a small alphabet. A text that does not fit
is shortened and gets eight hexadecimal digits of its SHA-256, so that two texts do not meet.
"""

import hashlib
import re
from collections.abc import Mapping

MANAGER = "consort"
"""Our field manager, and the value of `MANAGED_BY` on all that we create."""
MANAGED_BY = "app.kubernetes.io/managed-by"
WORKLOAD = "consort.dev/workload"
POOL = "consort.dev/pool"
PLAN = "consort.dev/plan"
GENERATION = "consort.dev/generation"
SPEC_HASH = "consort.dev/spec-hash"
"""Annotation: hash of what was applied."""

MOST = 63
"""Characters of a DNS label and of a label value."""
_DIGITS = 8
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MOST_SUBDOMAIN = 253


def object_name(text: str, most: int = MOST) -> str:
    """A DNS label that begins with a letter, at most `most` (16 to 63) characters long.

    A text that is one already stays as it is. Raises ValueError for an empty text.
    """
    if not text:
        raise ValueError("A name has at least one character.")
    if len(text) <= most and _NAME.fullmatch(text):
        return text
    cleaned = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not cleaned or not cleaned[0].isalpha():
        cleaned = f"x-{cleaned}".strip("-")
    return _with_hash(cleaned, text, most)


def label_value(text: str) -> str:
    """A value that a label may have; one that is allowed already stays as it is."""
    if len(text) <= MOST and _VALUE.fullmatch(text):
        return text
    cleaned = re.sub(r"[^-A-Za-z0-9_.]+", "-", text).strip("-_.")
    return _with_hash(cleaned or "x", text, MOST)


def selector(labels: Mapping[str, str]) -> str:
    """A label selector that asks for all of these values, in a fixed order."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def ours(**labels: str) -> dict[str, str]:
    """`MANAGED_BY` and the `consort.dev/` labels of these names, with allowed values."""
    return {MANAGED_BY: MANAGER} | {
        f"consort.dev/{name.replace('_', '-')}": label_value(value)
        for name, value in labels.items()
    }


def is_object_name(text: str) -> bool:
    """Whether an object or a namespace can have this name: a DNS subdomain, also with colons.

    Colons stand in names of roles; what could lead a path elsewhere (slash, per cent) does not.
    """
    plain = text.replace(":", "-")
    return len(text) <= MOST_SUBDOMAIN and _SUBDOMAIN.fullmatch(plain) is not None


def _with_hash(cleaned: str, text: str, most: int) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    kept = cleaned[: most - _DIGITS - 1].rstrip("-_.")
    return f"{kept}-{digest}"
