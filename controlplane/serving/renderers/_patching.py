"""What the operator adds to a rendered object, put on last: strategic merge patch or JSON patch.

A mapping is a strategic merge patch: mappings merge, `null` removes, lists of the kinds below merge
by their key, other lists are replaced; `$patch: delete` and `$patch: replace` work, further
directives are refused. A list is a JSON patch (RFC 6902). Merge keys: Kubernetes 1.36,
core/v1 types. Names, our labels, the selector, the number of replicas and the node are not the
patch's to change: the role ledger and the plan decide them.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from controlplane.serving.renderers._json_patch import JsonPatchError, put_on
from controlplane.serving.renderers.base import Manifest, RenderRefusedError

MOST_DEPTH = 40
_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "resourceClaims": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_OWN_PREFIXES = ("consort.dev/", "llm-d.ai/", "app.kubernetes.io/managed-by")


def patched(manifest: Manifest, patch: Any) -> Manifest:
    """The object with the patch on it; the one given stays as it is.

    Raises RenderRefusedError, with the path of what the patch may not change.
    """
    if not patch:
        return manifest
    if _depth(patch) > MOST_DEPTH:
        raise RenderRefusedError("patch", f"The patch is nested deeper than {MOST_DEPTH}.")
    if isinstance(patch, list):
        try:
            after = put_on(manifest, patch)
        except JsonPatchError as error:
            raise RenderRefusedError("patch", f"The JSON patch does not fit: {error}") from error
    else:
        after = _merged(manifest, patch, "")
    if not isinstance(after, dict):
        raise RenderRefusedError("patch", "The patch leaves no object behind.")
    _refuse_what_is_ours(manifest, after)
    return after


def _refuse_what_is_ours(before: Manifest, after: Manifest) -> None:
    ours, found = dict(_ours(before, "")), dict(_ours(after, ""))
    changed = sorted(
        path for path in {*ours, *found} if ours.get(path, ...) != found.get(path, ...)
    )
    if changed:
        raise RenderRefusedError(
            "patch",
            f"The patch changes {changed[0]}, which Consort decides. Take that out of the patch.",
        )


def _ours(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Path and value of everything that a patch may not change."""
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield from _ours(one, f"{path}/{place}")
        return
    if not isinstance(value, dict):
        return
    for key, one in value.items():
        here = f"{path}/{key}"
        if _is_ours(path, key):
            yield here, one
        elif key == "containers" and isinstance(one, list) and one:
            yield f"{here}/0/name", one[0].get("name") if isinstance(one[0], dict) else None
        else:
            yield from _ours(one, here)


def _is_ours(path: str, key: str) -> bool:
    if not path:
        return key in {"apiVersion", "kind"}
    if path == "/spec":
        return key in {"selector", "replicas", "serviceName"}
    if path.endswith("/metadata"):
        return key in {"name", "namespace"}
    if path.endswith("/labels"):
        return key.startswith(_OWN_PREFIXES)
    return key in {"size", "kubernetes.io/hostname"} or (
        key == "nodeSelectorTerms" and "/nodeAffinity" in path
    )


def _merged(value: Any, patch: Any, path: str) -> Any:
    """Strategic merge of a patch into a value."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    directive = patch.get("$patch")
    _refuse_directives(patch, path)
    rest = {key: one for key, one in patch.items() if key != "$patch"}
    if directive == "replace":
        return deepcopy(rest)
    if directive == "delete":
        return None
    found = dict(value) if isinstance(value, dict) else {}
    for key, one in rest.items():
        merged = _merged_field(found.get(key), key, one, f"{path}/{key}")
        if merged is None:
            found.pop(key, None)
        else:
            found[key] = merged
    return found


def _merged_field(value: Any, key: str, patch: Any, path: str) -> Any:
    if isinstance(patch, list) and key in _MERGE_KEYS and isinstance(value, list):
        return _merged_list(value, patch, _MERGE_KEYS[key], path)
    return _merged(value, patch, path)


def _merged_list(items: list[Any], patch: list[Any], merge_key: str, path: str) -> list[Any]:
    if any(isinstance(one, dict) and one.get("$patch") == "replace" for one in patch):
        return [deepcopy(one) for one in patch if "$patch" not in one]
    found = list(items)
    for change in patch:
        if not isinstance(change, dict) or merge_key not in change:
            raise RenderRefusedError(
                "patch", f"The patch has an entry of {path} without '{merge_key}'."
            )
        places = [
            place
            for place, one in enumerate(found)
            if isinstance(one, dict) and one.get(merge_key) == change[merge_key]
        ]
        merged = _merged(found[places[0]] if places else {}, change, path)
        if merged is None:
            found = [one for place, one in enumerate(found) if place not in places]
        elif places:
            found[places[0]] = merged
        else:
            found.append(merged)
    return found


def _refuse_directives(patch: Mapping[str, Any], path: str) -> None:
    for key, value in patch.items():
        if key.startswith("$") and (key != "$patch" or value not in {"delete", "replace"}):
            raise RenderRefusedError(
                "patch",
                f"The patch uses '{key}: {value}' at {path or '/'}; allowed are "
                "'$patch: delete' and '$patch: replace'.",
            )


def _depth(value: Any) -> int:
    """Levels of nesting, counted without recursion, at most one more than is allowed."""
    deepest, waiting = 0, [(value, 1)]
    while waiting and deepest <= MOST_DEPTH:
        one, level = waiting.pop()
        deepest = max(deepest, level)
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting.extend((each, level + 1) for each in inner)
    return deepest
