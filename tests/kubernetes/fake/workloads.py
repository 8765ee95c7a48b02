"""Controllers of Deployments, ReplicaSets and StatefulSets."""

import datetime as dt
import hashlib
import json
import math
import uuid
from typing import Any

from tests.kubernetes.fake.admission import FINISHED, POD
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.events import tell, without_names
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.nodes import condition, is_ready
from tests.kubernetes.fake.owners import owned_of, owner_reference
from tests.kubernetes.fake.store import Object

DEPLOYMENT, SET = kind_of("apps/v1", "Deployment"), kind_of("apps/v1", "ReplicaSet")
STATEFUL = kind_of("apps/v1", "StatefulSet")
HASH, REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"
Owned = dict[str, list[Object]]


def template_hash(template: Object) -> str:
    """A short word that changes with a Pod template."""
    text = json.dumps(template, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def is_active(pod: Object) -> bool:
    """Whether a Pod counts: not finished and not on its way out."""
    gone = pod["metadata"].get("deletionTimestamp")
    return not gone and pod["status"].get("phase") not in FINISHED


def make_pod(api: Api, owner: Object, template: Object, name: str, **labels: str) -> Object:
    """Create a Pod of a template. Raises ApiError when admission or a quota says no."""
    meta = template.get("metadata") or {}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": (meta.get("labels") or {}) | labels,
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": template["spec"],
    }
    return api.create(POD, owner["metadata"]["namespace"], body)


def delete_pod(api: Api, pod: Object) -> None:
    """Begin to end a Pod."""
    api.delete(POD, pod["metadata"]["namespace"], pod["metadata"]["name"])


def counts(**found: int) -> Object:
    """Numbers of a status; zeros are left out, as on the wire."""
    return {key: number for key, number in found.items() if number}


# --- ReplicaSets --------------------------------------------------------------------------------


def run_replica_sets(api: Api) -> None:
    """Make and end Pods until each ReplicaSet has as many as it wants."""
    pods = owned_of(api.store.all(POD))
    for item in api.store.all(SET):
        if not item["metadata"].get("deletionTimestamp"):
            _run_set(api, item, [p for p in pods.get(item["metadata"]["uid"], []) if is_active(p)])


def _run_set(api: Api, item: Object, pods: list[Object]) -> None:
    wanted, failure = item["spec"]["replicas"], None
    for pod in sorted(pods, key=is_ready)[: max(0, len(pods) - wanted)]:
        delete_pod(api, pod)
        pods.remove(pod)
    while len(pods) < wanted:
        name = f"{item['metadata']['name']}-{uuid.uuid4().hex[:5]}"
        try:
            pods.append(make_pod(api, item, item["spec"]["template"], name))
        except ApiError as error:
            failure = error.message
            tell(api, item, "FailedCreate", f"Error creating: {failure}", "replicaset-controller")
            break
    ready = [pod for pod in pods if is_ready(pod)]
    status: Object = {"replicas": len(pods), "observedGeneration": item["metadata"]["generation"]}
    status |= counts(
        fullyLabeledReplicas=len(pods), readyReplicas=len(ready), availableReplicas=len(ready)
    )
    if failure:
        status["conditions"] = [_failed(api, item, failure)]
    api.set_status(SET, item, status)


def _failed(api: Api, item: Object, message: str) -> Object:
    for entry in (item.get("status") or {}).get("conditions") or []:
        if without_names(entry["message"]) == without_names(message):
            return dict(entry)
    return condition("ReplicaFailure", "True", "FailedCreate", message, api.clock.stamp())


# --- Deployments --------------------------------------------------------------------------------


def run_deployments(api: Api) -> None:
    """Carry each Deployment from its old ReplicaSets to the one of its template."""
    sets, pods = owned_of(api.store.all(SET)), owned_of(api.store.all(POD))
    for item in api.store.all(DEPLOYMENT):
        if not item["metadata"].get("deletionTimestamp"):
            mine = sets.get(item["metadata"]["uid"], [])
            _run_deployment(api, item, mine, pods)


def _run_deployment(api: Api, item: Object, sets: list[Object], pods: Owned) -> None:
    name = f"{item['metadata']['name']}-{template_hash(item['spec']['template'])}"
    new = next((entry for entry in sets if entry["metadata"]["name"] == name), None)
    old = [entry for entry in sets if entry is not new]
    if item["spec"].get("paused"):
        _report(api, item, new, sets)
        return
    recreate = item["spec"]["strategy"]["type"] == "Recreate"
    held = any(pods.get(entry["metadata"]["uid"]) for entry in old)
    for entry in old if recreate else []:
        _scale(api, entry, 0)
    if recreate and held:
        _report(api, item, new, sets)
        return
    if new is None:
        new = _new_set(api, item, sets, name, _room(item, old) if old else item["spec"]["replicas"])
        sets = [*sets, new]
    if recreate or not any(entry["spec"]["replicas"] for entry in old):
        new = _scale(api, new, item["spec"]["replicas"])
    else:
        new = _roll(api, item, new, old)
    _report(api, item, new, [new, *old])


def _new_set(api: Api, item: Object, sets: list[Object], name: str, replicas: int) -> Object:
    word, template, meta = name.rpartition("-")[2], item["spec"]["template"], item["metadata"]
    labels = (template["metadata"].get("labels") or {}) | {HASH: word}
    revision = 1 + max((int(_note(entry)) for entry in sets), default=0)
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [owner_reference(item)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": item["spec"]["selector"]["matchLabels"] | {HASH: word}},
            "template": template | {"metadata": template["metadata"] | {"labels": labels}},
        },
    }
    made = api.create(SET, meta["namespace"], body)
    live = api.read(DEPLOYMENT, meta["namespace"], meta["name"])
    notes = (live["metadata"].get("annotations") or {}) | {REVISION: str(revision)}
    noted = live | {"metadata": live["metadata"] | {"annotations": notes}}
    api.replace(DEPLOYMENT, meta["namespace"], meta["name"], noted)
    return made


def _note(item: Object) -> str:
    return str((item["metadata"].get("annotations") or {}).get(REVISION, "0"))


def _scale(api: Api, item: Object, replicas: int) -> Object:
    meta = item["metadata"]
    live = api.store.get(SET, meta["namespace"], meta["name"])
    if live is None or live["spec"]["replicas"] == replicas:
        return live or item
    body = live | {"spec": live["spec"] | {"replicas": replicas}}
    return api.replace(SET, meta["namespace"], meta["name"], body)


def _share(value: Any, whole: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    exact = whole * int(str(value).rstrip("%")) / 100
    return math.ceil(exact) if up else math.floor(exact)


def _limits(item: Object) -> tuple[int, int]:
    """How many more than wanted, and how many fewer ready ones, an update may have."""
    rolling, wanted = item["spec"]["strategy"].get("rollingUpdate") or {}, item["spec"]["replicas"]
    surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, missing if surge or missing else 1


def _room(item: Object, old: list[Object]) -> int:
    total = sum(entry["spec"]["replicas"] for entry in old)
    wanted: int = item["spec"]["replicas"]
    return max(0, min(wanted, wanted + _limits(item)[0] - total))


def _roll(api: Api, item: Object, new: Object, old: list[Object]) -> Object:
    wanted, (surge, missing) = item["spec"]["replicas"], _limits(item)
    total = sum(entry["spec"]["replicas"] for entry in [new, *old])
    grown = min(wanted, new["spec"]["replicas"] + max(0, wanted + surge - total))
    new = _scale(api, new, grown)
    ready_new = (new.get("status") or {}).get("readyReplicas", 0)
    ready_old = {e["metadata"]["uid"]: (e.get("status") or {}).get("readyReplicas", 0) for e in old}
    spare = ready_new + sum(ready_old.values()) - (wanted - missing)
    for entry in old:
        ready = ready_old[entry["metadata"]["uid"]]
        broken = entry["spec"]["replicas"] - ready
        less = broken + min(ready, max(0, spare))
        spare -= max(0, less - broken)
        _scale(api, entry, max(0, entry["spec"]["replicas"] - less))
    return new


def _report(api: Api, item: Object, new: Object | None, sets: list[Object]) -> None:
    meta = item["metadata"]
    live = api.read(DEPLOYMENT, meta["namespace"], meta["name"])
    wanted = live["spec"]["replicas"]
    fresh = [api.store.get(SET, meta["namespace"], e["metadata"]["name"]) or e for e in sets]
    states = [entry.get("status") or {} for entry in fresh]
    mine = (api.store.get(SET, meta["namespace"], new["metadata"]["name"]) or new) if new else {}
    total = sum(state.get("replicas", 0) for state in states)
    ready = sum(state.get("readyReplicas", 0) for state in states)
    updated = (mine.get("status") or {}).get("replicas", 0)
    status: Object = {"observedGeneration": live["metadata"]["generation"]} | counts(
        replicas=total,
        updatedReplicas=updated,
        readyReplicas=ready,
        availableReplicas=ready,
        unavailableReplicas=max(0, max(wanted, total) - ready),
    )
    complete = updated == wanted == ready == total
    failures = [e for state in states for e in state.get("conditions") or []]
    listed = _conditions(api, live, status, mine, complete=complete)
    if failures:
        listed.append(_kept(live, failures[0]))
    api.set_status(DEPLOYMENT, live, status | {"conditions": listed})


def _conditions(
    api: Api, item: Object, status: Object, new: Object, *, complete: bool
) -> list[Any]:
    least = item["spec"]["replicas"] - _least_missing(item)
    now, old = api.clock.stamp(), (item.get("status") or {})
    if status.get("availableReplicas", 0) >= least:
        words = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        words = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    available = condition("Available", *words, now) | {"lastUpdateTime": now}
    name = (new.get("metadata") or {}).get("name", "")
    before = _found(old, "Progressing")
    moved = not before or {k: v for k, v in old.items() if k != "conditions"} != status
    since = now if moved else before["lastUpdateTime"]
    if complete:
        words = (
            "True",
            "NewReplicaSetAvailable",
            f'ReplicaSet "{name}" has successfully progressed.',
        )
    elif _overdue(api, item, since):
        words = (
            "False",
            "ProgressDeadlineExceeded",
            f'ReplicaSet "{name}" has timed out progressing.',
        )
    else:
        words = ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    progressing = condition("Progressing", *words, now) | {"lastUpdateTime": since}
    return [_kept(item, available), _kept(item, progressing)]


def _least_missing(item: Object) -> int:
    return _limits(item)[1] if item["spec"]["strategy"]["type"] == "RollingUpdate" else 0


def _overdue(api: Api, item: Object, since: str) -> bool:
    began = dt.datetime.fromisoformat(since)
    most = dt.timedelta(seconds=item["spec"]["progressDeadlineSeconds"])
    return api.clock.now() - began > most


def _found(status: Object, kind: str) -> Object:
    return next((e for e in status.get("conditions") or [] if e["type"] == kind), {})


def _kept(item: Object, new: Object) -> Object:
    """The condition with its old times where nothing changed."""
    old = _found(item.get("status") or {}, new["type"])
    same = all(old.get(key) == new.get(key) for key in ("status", "reason", "message"))
    if not same:
        times = {"lastTransitionTime"} if old.get("status") == new["status"] else set()
        return new | {key: old[key] for key in times if key in old}
    return old | {key: new[key] for key in ("lastUpdateTime",) if new["type"] == "Progressing"}


# --- StatefulSets -------------------------------------------------------------------------------


def run_stateful_sets(api: Api) -> None:
    """Keep Pods with ordinals; a changed template replaces them one by one from the highest."""
    pods = owned_of(api.store.all(POD))
    for item in api.store.all(STATEFUL):
        if not item["metadata"].get("deletionTimestamp"):
            _run_stateful(api, item, pods.get(item["metadata"]["uid"], []))


def _run_stateful(api: Api, item: Object, pods: list[Object]) -> None:
    word, wanted = template_hash(item["spec"]["template"]), item["spec"]["replicas"]
    label = "controller-revision-hash"
    names = [f"{item['metadata']['name']}-{number}" for number in range(wanted)]
    there = {pod["metadata"]["name"]: pod for pod in pods}
    for name in sorted(set(there) - set(names)):
        if is_active(there[name]):
            delete_pod(api, there[name])
    for name in names:
        if name not in there:
            there[name] = make_pod(api, item, item["spec"]["template"], name, **{label: word})
    mine = [there[name] for name in names]
    old = [pod for pod in mine if pod["metadata"]["labels"].get(label) != word]
    if old and all(is_ready(pod) for pod in mine if pod not in old):
        delete_pod(api, old[-1])
    ready = sum(is_ready(pod) for pod in mine)
    status: Object = {"observedGeneration": item["metadata"]["generation"], "replicas": len(mine)}
    status |= counts(
        readyReplicas=ready,
        availableReplicas=ready,
        updatedReplicas=len(mine) - len(old),
        currentReplicas=len(mine),
    )
    api.set_status(STATEFUL, item, status)
