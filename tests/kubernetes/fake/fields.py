"""Which fields an object has, per leaf, with list items addressed by key (structured merge).

A path is a tuple of elements: `("f", "spec")` for a field, `("k", '{"name":"x"}')` for an item of
a keyed list, `("v", '"x"')` for a member of a set, `(".", "")` for the item itself. Lists that
are not keyed and maps that the API calls atomic are one leaf.
"""

import json
from collections.abc import Iterator
from typing import Any

Element = tuple[str, str]
Path = tuple[Element, ...]
ITSELF: Element = (".", "")

KEYED: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "listeners": ("name",),
}
SETS = frozenset({"finalizers"})
ATOMIC = frozenset(
    {
        "nodeSelector",
        "selector",
        "matchLabels",
        "fieldRef",
        "resourceFieldRef",
        "secretKeyRef",
        "configMapKeyRef",
    }
)
DEFAULT_KEYS = {"protocol": "TCP"}
IDENTITY = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "deletionGracePeriodSeconds",
        "generateName",
    }
)


def list_keys(name: str, items: list[Any]) -> tuple[str, ...] | None:
    """The keys of a keyed list of this field name; None: the list is atomic."""
    if not all(isinstance(item, dict) for item in items):
        return None
    if name == "ports":
        if all("containerPort" in item for item in items):
            return "containerPort", "protocol"
        return ("port", "protocol") if all("port" in item for item in items) else None
    keys = KEYED.get(name)
    return keys if keys and all(keys[0] in item for item in items) else None


def item_key(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    """The JSON text that addresses an item of a keyed list."""
    found = {key: item.get(key, DEFAULT_KEYS.get(key)) for key in sorted(keys)}
    return json.dumps({k: v for k, v in found.items() if v is not None}, separators=(",", ":"))


def leaves(item: dict[str, Any]) -> dict[Path, Any]:
    """Every leaf of an object with its value, without what identifies the object."""
    found: dict[Path, Any] = {}
    for key, value in item.items():
        if key in {"apiVersion", "kind"} or value is None:
            continue
        if key == "metadata":
            value = {k: v for k, v in value.items() if k not in IDENTITY}
            if not value:
                continue
        _walk(key, value, (("f", key),), found)
    return found


def _walk(name: str, value: Any, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and name not in ATOMIC:
        _walk_fields(value, path, found)
    elif isinstance(value, list) and value and name in SETS:
        found.update({(*path, ("v", json.dumps(member))): member for member in value})
    elif isinstance(value, list) and value and (keys := list_keys(name, value)):
        for member in value:
            inside = (*path, ("k", item_key(member, keys)))
            found[*inside, ITSELF] = True
            _walk_fields(member, inside, found)
    else:
        found[path] = value


def _walk_fields(value: dict[str, Any], path: Path, found: dict[Path, Any]) -> None:
    for key, inner in value.items():
        if inner is not None:
            _walk(key, inner, (*path, ("f", key)), found)


def to_fields_v1(paths: set[Path]) -> dict[str, Any]:
    """The wire form of a set of paths, as `managedFields[].fieldsV1`."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for kind, text in path:
            node = node.setdefault("." if kind == "." else f"{kind}:{text}", {})
    return tree


def from_fields_v1(tree: dict[str, Any]) -> set[Path]:
    """The paths of a wire form."""
    return set(_paths(tree, ()))


def _paths(tree: dict[str, Any], path: Path) -> Iterator[Path]:
    if not tree and path:
        yield path
    for key, inner in tree.items():
        kind, _, text = key.partition(":")
        yield from _paths(inner, (*path, ITSELF if key == "." else (kind, text)))


def shown(path: Path) -> str:
    """A path as the API server writes it: `.spec.containers[name="server"].image`."""
    text = ""
    for kind, part in path:
        if kind == "f":
            text += f".{part}"
        elif kind == "k":
            pairs = json.loads(part).items()
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in pairs) + "]"
        elif kind == "v":
            text += f"[={part}]"
    return text


def merged(live: Any, wish: Any, name: str = "") -> Any:
    """`wish` laid over `live`: maps and keyed lists grow together, the rest is replaced."""
    if isinstance(live, dict) and isinstance(wish, dict) and name not in ATOMIC:
        result = dict(live)
        for key, value in wish.items():
            if value is not None:
                result[key] = merged(live.get(key), value, key)
        return result
    if isinstance(live, list) and isinstance(wish, list) and live and wish:
        if name in SETS:
            return live + [member for member in wish if member not in live]
        keys = list_keys(name, wish)
        if keys and list_keys(name, live) == keys:
            return _merged_items(live, wish, keys)
    if isinstance(wish, dict):
        return {key: merged(None, value, key) for key, value in wish.items() if value is not None}
    return wish


def _merged_items(live: list[Any], wish: list[Any], keys: tuple[str, ...]) -> list[Any]:
    wanted = {item_key(item, keys): item for item in wish}
    kept = []
    for item in live:
        over = wanted.pop(item_key(item, keys), None)
        kept.append(item if over is None else merged(item, over))
    return kept + list(wanted.values())


def without(item: Any, path: Path, name: str = "") -> Any:
    """The object without one leaf; maps and lists that this empties go too."""
    (kind, text), rest = path[0], path[1:]
    if kind == "f":
        return _without_field(item, text, rest)
    if kind == "v" and isinstance(item, list):
        return [member for member in item if json.dumps(member) != text]
    keys = list_keys(name, item) if isinstance(item, list) else None
    return _without_item(item, keys, text, rest) if keys else item


def _without_item(items: list[Any], keys: tuple[str, ...], key: str, rest: Path) -> list[Any]:
    if rest == (ITSELF,):
        return [member for member in items if item_key(member, keys) != key]
    return [without(m, rest) if item_key(m, keys) == key else m for m in items]


def _without_field(item: Any, key: str, rest: Path) -> Any:
    if not isinstance(item, dict) or key not in item:
        return item
    result = dict(item)
    if rest:
        result[key] = without(item[key], rest, key)
        if result[key] or not item[key]:
            return result
    del result[key]
    return result
