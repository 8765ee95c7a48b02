"""The scheduler: binds Pods to Nodes, or says why not in the real one's words."""

from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

from tests.kubernetes.fake import devices
from tests.kubernetes.fake.admission import FINISHED, POD, requests
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.events import tell
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.nodes import condition
from tests.kubernetes.fake.quantities import amount
from tests.kubernetes.fake.store import Object

NODE, CLAIM = kind_of("v1", "Node"), kind_of("v1", "PersistentVolumeClaim")
Used = dict[str, dict[str, Decimal]]


def schedule(api: Api) -> None:
    """Bind every Pod that fits somewhere; the others get the condition Unschedulable."""
    pods = api.store.all(POD)
    waiting = [pod for pod in pods if _waits(pod)]
    if not waiting:
        return
    nodes = api.store.all(NODE)
    used: Used = defaultdict(lambda: defaultdict(Decimal))
    for pod in pods:
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in FINISHED:
            _add(used, pod["spec"]["nodeName"], pod)
    for pod in waiting:
        _place(api, pod, nodes, used)


def _waits(pod: Object) -> bool:
    gone = pod["metadata"].get("deletionTimestamp") or pod["status"].get("phase") in FINISHED
    return not gone and not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates")


def _add(used: Used, node: str, pod: Object) -> None:
    used[node]["pods"] += 1
    for name, value in requests(pod).items():
        used[node][name] += value


def _place(api: Api, pod: Object, nodes: list[Object], used: Used) -> None:
    claims = devices.claims_of(api, pod)
    if claims is None:
        _refuse(api, pod, f"0/{len(nodes)} nodes are available: waiting for resource claims.")
        return
    if missing := _missing_volume(api, pod):
        text = f'persistentvolumeclaim "{missing}" not found'
        _refuse(api, pod, f"0/{len(nodes)} nodes are available: {text}.")
        return
    reasons: Counter[str] = Counter()
    for node in nodes:
        why = _why_not(pod, node, used)
        chosen = (
            None if why or not claims else devices.choose(api, claims, node["metadata"]["name"])
        )
        if not why and claims and chosen is None:
            why = ["cannot allocate all claims"]
        if not why:
            _bind(api, pod, node, claims, chosen or [])
            _add(used, node["metadata"]["name"], pod)
            return
        reasons.update(why)
    _refuse(api, pod, _sentence(len(nodes), reasons))


def _sentence(nodes: int, reasons: Counter[str]) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {why}" for why, count in reasons.items()))
    first = f"0/{nodes} nodes are available"
    if any(why.startswith("Insufficient") for why in reasons):
        hope = f"{nodes} No preemption victims found for incoming pod"
    else:
        hope = f"{nodes} Preemption is not helpful for scheduling"
    return f"{first}: {listed}. preemption: {first}: {hope}."


def _why_not(pod: Object, node: Object, used: Used) -> list[str]:
    """Why a Pod does not go to a Node; the resources are looked at last."""
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if node.get("spec", {}).get("unschedulable"):
        return ["node(s) were unschedulable"]
    wanted = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()) or not _near(spec, labels):
        return ["node(s) didn't match Pod's node affinity/selector"]
    for taint in node.get("spec", {}).get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not tolerated(spec, taint):
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    return _too_little(pod, node, used)


def _too_little(pod: Object, node: Object, used: Used) -> list[str]:
    has = (node.get("status") or {}).get("allocatable") or {}
    busy, missing = used[node["metadata"]["name"]], []
    for name, asked in ({"pods": Decimal(1)} | requests(pod)).items():
        free = (amount(has.get(name)) or Decimal(0)) - busy[name]
        if asked > free:
            missing.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return missing


def tolerated(spec: Object, taint: Object) -> bool:
    """Whether a Pod bears a taint, for a while or for good."""
    for entry in spec.get("tolerations") or []:
        if entry.get("effect") and entry["effect"] != taint["effect"]:
            continue
        if not entry.get("key") and entry.get("operator") == "Exists":
            return True
        same = entry.get("key") == taint["key"]
        if same and (
            entry.get("operator") == "Exists" or entry.get("value", "") == taint.get("value", "")
        ):
            return True
    return False


def _near(spec: Object, labels: Object) -> bool:
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    return any(
        all(_fits(rule, labels) for rule in term.get("matchExpressions") or [])
        for term in affinity["nodeSelectorTerms"]
    )


def _fits(rule: Object, labels: Object) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or []
    answers = {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return answers[rule["operator"]]


def _missing_volume(api: Api, pod: Object) -> str | None:
    for volume in pod["spec"].get("volumes") or []:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name and not api.store.get(CLAIM, pod["metadata"]["namespace"], name):
            return str(name)
    return None


def _bind(api: Api, pod: Object, node: Object, claims: list[Object], chosen: Any) -> None:
    if claims:
        devices.allocate(api, pod, claims, chosen)
    meta = pod["metadata"]
    body = pod | {"spec": pod["spec"] | {"nodeName": node["metadata"]["name"]}}
    bound = api.replace(POD, meta["namespace"], meta["name"], body)
    said = condition("PodScheduled", "True", "", at=api.clock.stamp())
    api.set_status(POD, bound, bound["status"] | {"conditions": [said]})


def _refuse(api: Api, pod: Object, message: str) -> None:
    old = (pod["status"].get("conditions") or [{}])[0]
    if old.get("message") == message:
        return
    said = condition("PodScheduled", "False", "Unschedulable", message, api.clock.stamp())
    api.set_status(POD, pod, pod["status"] | {"conditions": [said]})
    tell(api, pod, "FailedScheduling", message, "default-scheduler")
