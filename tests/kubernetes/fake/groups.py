"""The controller of LeaderWorkerSets: groups of Pods that live and die together.

The Pods belong to the set itself; the StatefulSets in between are left out, and so is what the
alpha subgroups do.
"""

from tests.kubernetes.fake.admission import POD
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.events import tell
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.nodes import condition, is_ready
from tests.kubernetes.fake.owners import owned_of
from tests.kubernetes.fake.store import Object
from tests.kubernetes.fake.workloads import counts, delete_pod, is_active, make_pod, template_hash

GROUPS = kind_of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
PREFIX = "leaderworkerset.sigs.k8s.io/"
NAME, GROUP, WORKER = f"{PREFIX}name", f"{PREFIX}group-index", f"{PREFIX}worker-index"
REVISION = f"{PREFIX}template-revision-hash"


def run_groups(api: Api) -> None:
    """Make, renew and end groups until each set is as it wants to be."""
    pods = owned_of(api.store.all(POD))
    for item in api.store.all(GROUPS):
        if not item["metadata"].get("deletionTimestamp"):
            _run(api, item, pods.get(item["metadata"]["uid"], []))


def _run(api: Api, item: Object, pods: list[Object]) -> None:
    spec = item["spec"]
    size, wanted = spec["leaderWorkerTemplate"]["size"], spec["replicas"]
    word = template_hash(spec["leaderWorkerTemplate"])
    groups: dict[int, list[Object]] = {number: [] for number in range(wanted)}
    for pod in pods:
        groups.setdefault(int(pod["metadata"]["labels"][GROUP]), []).append(pod)
    for number, members in groups.items():
        if number >= wanted or _broken(item, members, size):
            _end(api, members)
    old = [n for n in range(wanted) if groups[n] and not _is_of(groups[n], word)]
    fresh = [n for n in range(wanted) if n not in old]
    if old and all(_is_ready(groups[n], size) for n in fresh):
        _end(api, groups[old[-1]])
    for number in fresh:
        if not groups[number]:
            groups[number] = _start(api, item, number, word)
    _report(api, item, [groups[n] for n in range(wanted)], word)


def _broken(item: Object, members: list[Object], size: int) -> bool:
    """Whether one member is missing or has started again: then all go."""
    if not members or item["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "None":
        return False
    restarted = any(
        status.get("restartCount")
        for pod in members
        for status in pod["status"].get("containerStatuses") or []
    )
    return restarted or len(members) < size or not all(is_active(pod) for pod in members)


def _is_of(members: list[Object], word: str) -> bool:
    return all(pod["metadata"]["labels"].get(REVISION) == word for pod in members)


def _is_ready(members: list[Object], size: int) -> bool:
    return len(members) == size and all(is_ready(pod) and is_active(pod) for pod in members)


def _end(api: Api, members: list[Object]) -> None:
    for pod in members:
        if is_active(pod):
            delete_pod(api, pod)


def _start(api: Api, item: Object, number: int, word: str) -> list[Object]:
    meta, spec = item["metadata"], item["spec"]["leaderWorkerTemplate"]
    leader, made = f"{meta['name']}-{number}", []
    for index in range(spec["size"]):
        template = (
            spec["workerTemplate"]
            if index
            else spec.get("leaderTemplate") or spec["workerTemplate"]
        )
        labels = {NAME: meta["name"], GROUP: str(number), WORKER: str(index), REVISION: word}
        address = f"{leader}.{meta['name']}.{meta['namespace']}"
        told = {
            "LWS_LEADER_ADDRESS": address,
            "LWS_GROUP_SIZE": str(spec["size"]),
            "LWS_WORKER_INDEX": str(index),
        }
        name = f"{leader}-{index}" if index else leader
        try:
            made.append(make_pod(api, item, _told(template, told), name, **labels))
        except ApiError as error:
            tell(api, item, "FailedCreate", f"Error creating: {error.message}", "leaderworkerset")
            break
    return made


def _told(template: Object, env: dict[str, str]) -> Object:
    more = [{"name": key, "value": value} for key, value in env.items()]
    containers = [
        container | {"env": [*more, *(container.get("env") or [])]}
        for container in template["spec"]["containers"]
    ]
    return template | {"spec": template["spec"] | {"containers": containers}}


def _report(api: Api, item: Object, groups: list[list[Object]], word: str) -> None:
    size, wanted = item["spec"]["leaderWorkerTemplate"]["size"], item["spec"]["replicas"]
    there = [members for members in groups if members]
    ready = [members for members in there if _is_ready(members, size)]
    updated = [members for members in there if _is_of(members, word)]
    whole = len(ready) == len(updated) == wanted
    words = (
        ("AllGroupsReady", "All replicas are ready")
        if whole
        else ("GroupsProgressing", "Replicas are progressing")
    )
    old = {e["type"]: e for e in (item.get("status") or {}).get("conditions") or []}
    conditions = []
    for kind, holds in (("Available", whole), ("Progressing", not whole)):
        status = "True" if holds else "False"
        kept = old.get(kind, {})
        since = kept.get("lastTransitionTime") if kept.get("status") == status else None
        conditions.append(condition(kind, status, *words, since or api.clock.stamp()))
    status = counts(replicas=len(there), readyReplicas=len(ready), updatedReplicas=len(updated)) | {
        "conditions": conditions,
        "hpaPodSelector": f"{NAME}={item['metadata']['name']},{WORKER}=0",
    }
    api.set_status(GROUPS, item, status)
