"""Where an object in a cluster differs from what was applied, and who holds the fields.

Compared are the fields of the manifest only, never the whole object: servers fill in defaults, and
others may set what we do not. Lists whose items have a key are compared item by item, as the API
server merges them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from controlplane.serving.targets.kubernetes.shapes import dig, rows, text
from inventory.kubernetes.labels import MANAGER

MOST_FIELDS = 20
_KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "claims": ("name",),
}
"""Keys of the lists that a Pod's description has (`x-kubernetes-list-map-keys`)."""
_IDENTITY = {"apiVersion", "kind", "metadata", "status"}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i)?")
_UNITS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12),
    "P": Decimal(10**15), "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20),
    "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not as it was applied. `found` None: it is not there."""

    path: str
    wanted: Any
    found: Any
    manager: str = ""
    """Who holds the field by the object's own books; "" when they do not say."""

    def __str__(self) -> str:
        found = "nothing" if self.found is None else _shown(self.found)
        by = f" (held by {self.manager})" if self.manager else ""
        return f"{self.path}: {found} instead of {_shown(self.wanted)}{by}"


def differences(manifest: Mapping[str, Any], found: Mapping[str, Any]) -> list[Difference]:
    """Fields of the manifest that the object has otherwise, by path, at most MOST_FIELDS.

    Of the metadata only labels are compared: annotations carry who acts and when.
    """
    wanted = {key: value for key, value in manifest.items() if key not in _IDENTITY}
    labels = dig(manifest, "metadata", "labels")
    seen = [
        *_compare(".metadata.labels", labels or {}, dig(found, "metadata", "labels") or {}),
        *_compare("", wanted, found),
    ]
    return [
        Difference(row.path, row.wanted, row.found, holder(found, row.path))
        for row in sorted(seen, key=lambda row: row.path)[:MOST_FIELDS]
    ]


def holder(found: Mapping[str, Any], path: str) -> str:
    """Other field managers that hold the field or one within it; "" when none is written down."""
    words = _words(path)
    others = {
        text(row, "manager")
        for row in rows(found, "metadata", "managedFields")
        if text(row, "manager") != MANAGER
        and text(row, "subresource") != "status"
        and _holds(dig(row, "fieldsV1"), words)
    }
    return ", ".join(sorted(others - {""}))


def _compare(path: str, wanted: Any, found: Any) -> Iterator[Difference]:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key in wanted:
            yield from _compare(f"{path}.{key}", wanted[key], found.get(key, _MISSING))
    elif isinstance(wanted, list | tuple) and isinstance(found, list):
        yield from _compare_lists(path, wanted, found)
    elif not _is_same(wanted, found):
        yield Difference(path, wanted, None if found is _MISSING else found)


def _compare_lists(path: str, wanted: Sequence[Any], found: list[Any]) -> Iterator[Difference]:
    keys = _KEYS.get(path.rpartition(".")[2])
    if keys is None or not all(isinstance(row, Mapping) for row in wanted):
        if len(wanted) != len(found):
            yield Difference(path, list(wanted), found)
            return
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _compare(f"{path}[{number}]", one, other)
        return
    for row in wanted:
        name = json.dumps({key: row[key] for key in keys if key in row}, sort_keys=True)
        same = [
            other
            for other in found
            if isinstance(other, Mapping)
            and all(other.get(key) == row[key] for key in keys if key in row)
        ]
        yield from _compare(f"{path}[{name}]", row, same[0] if same else _MISSING)


def _is_same(wanted: Any, found: Any) -> bool:
    """Equal, or the same amount written in two ways; empty is the same as not there."""
    if found is _MISSING or found is None:
        return wanted is None or wanted in ("", [], {}, ())
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if wanted == found:
        return True
    amounts = _amount(wanted), _amount(found)
    return amounts[0] is not None and amounts[0] == amounts[1]


def _amount(value: Any) -> Decimal | None:
    """A quantity of Kubernetes as a number; None for any other text."""
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if match is None:
        return None
    try:
        return Decimal(match[1]) * _UNITS[match[2] or ""]
    except InvalidOperation:
        return None


def _words(path: str) -> list[str]:
    """Path as the keys of `fieldsV1`: `.spec.containers[{"name": "engine"}].image`."""
    found = re.findall(r"\.([^.\[]+)|\[(\{.*?\}|\d+)\]", path)
    keys = []
    for field, item in found:
        if field:
            keys.append(f"f:{field}")
        elif item.startswith("{"):
            keys.append("k:" + json.dumps(json.loads(item), sort_keys=True, separators=(",", ":")))
    return keys


def _holds(fields: Any, words: Sequence[str]) -> bool:
    """Whether a manager's fields lead to that place: the place itself, or one within it."""
    for word in words:
        if not isinstance(fields, Mapping):
            return False
        named = {_plain(key): value for key, value in fields.items() if isinstance(key, str)}
        if word not in named:
            return False
        fields = named[word]
    return True


def _plain(key: str) -> str:
    if not key.startswith("k:"):
        return key
    try:
        return "k:" + json.dumps(json.loads(key[2:]), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return key


def _shown(value: Any) -> str:
    shown = json.dumps(value, default=str, ensure_ascii=False)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
