"""Kubelets: what becomes of a Pod on its Node.

A test says how containers fare by a hook (`engine_for`), by annotations on the Pod, or afterwards
(`fail`, `recover`). Nothing said: the container runs and is ready at once.
"""

import datetime as dt
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

from tests.kubernetes.fake.admission import FINISHED, POD
from tests.kubernetes.fake.api import Api
from tests.kubernetes.fake.events import tell
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.nodes import UNREACHABLE, condition
from tests.kubernetes.fake.scheduler import tolerated
from tests.kubernetes.fake.store import Object

NODE = kind_of("v1", "Node")
SOURCES = {
    "secretRef": kind_of("v1", "Secret"),
    "configMapRef": kind_of("v1", "ConfigMap"),
    "secretKeyRef": kind_of("v1", "Secret"),
    "configMapKeyRef": kind_of("v1", "ConfigMap"),
}
FAIL, READY_AFTER, READY = "consort.test/fail", "consort.test/ready-after", "consort.test/ready"
EVICTED_AFTER = dt.timedelta(seconds=300)
PROBE_SECONDS = 1.0
IMAGE_FAILURES = frozenset({"ImagePullBackOff", "ErrImagePull", "InvalidImageName"})
CONFIG_FAILURE = "CreateContainerConfigError"
NEVER_STARTED = IMAGE_FAILURES | {CONFIG_FAILURE}


@dataclass(frozen=True)
class PodRun:
    """How a Pod's containers fare.

    `ip`: the address it gets; None: one of this cluster's own, all on loopback.
    `fail`: a waiting reason (CrashLoopBackOff, ImagePullBackOff, ...) or OOMKilled.
    `ready`: whether its probe succeeds; "probe": ask the address itself, as a kubelet does.
    `ready_after`: seconds of the cluster's clock until it can be ready.
    `ends_after`: seconds of that clock between the wish to end it and its end.
    """

    ip: str | None = None
    fail: str | None = None
    ready: bool | Callable[[], bool] | str = True
    ready_after: float = 0.0
    ends_after: float = 0.0


@dataclass
class _Running:
    run: PodRun
    ip: str
    started: dt.datetime
    restarts: int = 0
    last: str | None = None


@dataclass
class Kubelets:
    """All kubelets of one cluster."""

    api: Api
    engine_for: Callable[[Object], PodRun | None] | None = None
    engine_stopped: Callable[[Object], None] | None = None
    missing_images: set[str] = field(default_factory=set)
    silent: dict[str, dt.datetime] = field(default_factory=dict)
    _running: dict[str, _Running] = field(default_factory=dict)
    _failing: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _network: int = field(default_factory=lambda: secrets.randbelow(200) + 40)
    _subnet: int = field(default_factory=lambda: secrets.randbelow(200))
    _given: int = 0

    def fail(self, namespace: str, pod: str, reason: str = "CrashLoopBackOff") -> None:
        """From now on the Pod's container fails like this."""
        self._failing[namespace, pod] = reason

    def recover(self, namespace: str, pod: str) -> None:
        """The Pod's container runs again."""
        self._failing[namespace, pod] = None

    def run(self, only: Set[str] | None = None) -> None:
        """One round over all Pods that are bound to a Node, or to one of these."""
        nodes = {node["metadata"]["name"] for node in self.api.store.all(NODE)}
        for pod in self.api.store.all(POD):
            node = pod["spec"].get("nodeName")
            strange = not node or (only is not None and node not in only)
            if strange or pod["status"].get("phase") in FINISHED:
                continue
            if node not in nodes:
                self._drop(pod)
            elif node in self.silent:
                self._abandon(pod, self.silent[node])
            elif pod["metadata"].get("deletionTimestamp"):
                self._end(pod)
            else:
                self._sync(pod)

    def _end(self, pod: Object) -> None:
        """The Pod is on its way out: its containers may take their time."""
        state = self._running.get(pod["metadata"]["uid"])
        asked = dt.datetime.fromisoformat(pod["metadata"]["deletionTimestamp"])
        waited = (self.api.clock.now() - asked).total_seconds()
        if not state or waited >= state.run.ends_after:
            self._drop(pod)

    def _drop(self, pod: Object) -> None:
        meta = pod["metadata"]
        if self._running.pop(meta["uid"], None) and self.engine_stopped:
            self.engine_stopped(pod)
        if meta.get("finalizers"):
            return
        live = self.api.store.get(POD, meta["namespace"], meta["name"])
        if live and live["metadata"]["uid"] == meta["uid"]:
            self.api.store.drop(POD, live)

    def _abandon(self, pod: Object, since: dt.datetime) -> None:
        """Nobody reports for the Pod: not ready at once, evicted after five minutes."""
        taint = {"key": UNREACHABLE, "effect": "NoExecute"}
        late = self.api.clock.now() - since > EVICTED_AFTER
        conditions = [
            entry | {"status": "False"} if entry["type"] == "Ready" else entry
            for entry in pod["status"].get("conditions") or []
        ]
        pod = self.api.set_status(POD, pod, pod["status"] | {"conditions": conditions})
        meta = pod["metadata"]
        if late and not tolerated(pod["spec"], taint) and not meta.get("deletionTimestamp"):
            self.api.delete(POD, meta["namespace"], meta["name"])

    def _sync(self, pod: Object) -> None:
        meta = pod["metadata"]
        state = self._running.get(meta["uid"])
        if state is None:
            ip = self._address()
            run = self._asked(pod | {"status": pod["status"] | {"podIP": ip}})
            state = _Running(run, run.ip or ip, self.api.clock.now())
            self._running[meta["uid"]] = state
        failure = self._failure(pod, state)
        if failure != state.last:
            self._turned(state, failure)
        if _is_of_job(pod) and failure not in NEVER_STARTED:
            self.api.set_status(POD, pod, pod["status"] | _ended(pod, failure))
            return
        status = self._status(pod, state, failure)
        if failure and status != pod["status"]:
            tell(self.api, pod, *_words(pod, failure), "kubelet")
        self.api.set_status(POD, pod, status)

    def _turned(self, state: _Running, failure: str | None) -> None:
        """The container began to fail, or to run again."""
        started = failure not in NEVER_STARTED
        if failure and started:
            state.restarts += 1
        if not failure and state.last:
            state.started = self.api.clock.now()
        state.last = failure

    def _asked(self, pod: Object) -> PodRun:
        if self.engine_for and (run := self.engine_for(pod)):
            return run
        notes = pod["metadata"].get("annotations") or {}
        return PodRun(
            fail=notes.get(FAIL),
            ready=notes.get(READY, "true") == "true",
            ready_after=float(notes.get(READY_AFTER, 0)),
        )

    def _address(self) -> str:
        """An address of its own for each Pod; all of 127.0.0.0/8 is this machine."""
        self._given += 1
        third = (self._subnet + self._given // 250) % 250
        return f"127.{self._network}.{third}.{self._given % 250 + 1}"

    def _failure(self, pod: Object, state: _Running) -> str | None:
        meta = pod["metadata"]
        if (meta["namespace"], meta["name"]) in self._failing:
            return self._failing[meta["namespace"], meta["name"]]
        if {c["image"] for c in pod["spec"]["containers"]} & self.missing_images:
            return "ImagePullBackOff"
        return CONFIG_FAILURE if self._lacks(pod) else state.run.fail

    def _lacks(self, pod: Object) -> bool:
        """Whether a Secret or ConfigMap that a container needs is not there."""
        space = pod["metadata"]["namespace"]
        for container in pod["spec"]["containers"]:
            entries = [(e.get("valueFrom") or {}) for e in container.get("env") or []]
            for entry in [*entries, *(container.get("envFrom") or [])]:
                for key, kind in SOURCES.items():
                    ref = entry.get(key)
                    missing = ref and not self.api.store.get(kind, space, ref["name"])
                    if missing and not ref.get("optional"):
                        return True
        return False

    def _is_ready(self, pod: Object, state: _Running) -> bool:
        waited = (self.api.clock.now() - state.started).total_seconds()
        if waited < state.run.ready_after:
            return False
        if state.run.ready == "probe":
            return _probe(pod, state.ip)
        return bool(state.run.ready() if callable(state.run.ready) else state.run.ready)

    def _status(self, pod: Object, state: _Running, failure: str | None) -> Object:
        ready = not failure and self._is_ready(pod, state)
        now, started = self.api.clock.stamp(), state.started.strftime("%Y-%m-%dT%H:%M:%SZ")
        old = {e["type"]: e for e in pod["status"].get("conditions") or []}
        conditions = []
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            holds = ready or kind in {"PodScheduled", "Initialized"}
            entry = condition(
                kind, "True" if holds else "False", "" if holds else "ContainersNotReady"
            )
            same = old.get(kind, {}).get("status") == entry["status"]
            entry["lastTransitionTime"] = old[kind]["lastTransitionTime"] if same else now
            conditions.append(entry)
        containers = [
            _container(container, pod, state, failure, started=started, ready=ready)
            for container in pod["spec"]["containers"]
        ]
        waiting = failure in NEVER_STARTED
        return pod["status"] | {
            "phase": "Pending" if waiting else "Running",
            "podIP": state.ip,
            "podIPs": [{"ip": state.ip}],
            "hostIP": "192.0.2.10",
            "startTime": started,
            "conditions": conditions,
            "containerStatuses": containers,
            "observedGeneration": pod["metadata"].get("generation", 1),
        }


def _container(
    container: Object,
    pod: Object,
    state: _Running,
    failure: str | None,
    *,
    started: str,
    ready: bool,
) -> Object:
    status: Object = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "" if failure else f"{container['image']}@sha256:{'0' * 64}",
        "restartCount": state.restarts,
        "ready": ready,
        "started": not failure,
        "state": {"running": {"startedAt": started}},
    }
    if not failure:
        return status | {"containerID": f"containerd://{pod['metadata']['uid']}"}
    reason = "CrashLoopBackOff" if failure == "OOMKilled" else failure
    status["state"] = {"waiting": {"reason": reason, "message": _words(pod, failure)[1]}}
    if state.restarts:
        killed = failure == "OOMKilled"
        last = {
            "exitCode": 137 if killed else 1,
            "reason": "OOMKilled" if killed else "Error",
            "startedAt": started,
            "finishedAt": started,
        }
        status["lastState"] = {"terminated": last}
    return status


def _ended(pod: Object, failure: str | None) -> Object:
    """The status of a Job's Pod that has run to its end."""
    code = 0 if not failure else (137 if failure == "OOMKilled" else 1)
    reason = "Completed" if not failure else ("OOMKilled" if failure == "OOMKilled" else "Error")
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": reason}},
        }
        for container in pod["spec"]["containers"]
    ]
    return {"phase": "Failed" if failure else "Succeeded", "containerStatuses": containers}


def _words(pod: Object, failure: str) -> tuple[str, str]:
    """Reason and message as the kubelet writes them."""
    container = pod["spec"]["containers"][0]
    name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({pod['metadata']['uid']})"
    if failure in IMAGE_FAILURES:
        return "Failed", f'Back-off pulling image "{container["image"]}"'
    if failure == CONFIG_FAILURE:
        return "Failed", "secret or configmap not found"
    text = f"back-off 5m0s restarting failed container={container['name']} pod={name}"
    return "BackOff", text


def _is_of_job(pod: Object) -> bool:
    return any(ref["kind"] == "Job" for ref in pod["metadata"].get("ownerReferences") or [])


def _probe(pod: Object, ip: str) -> bool:
    """What the readiness probe of the first container that has one says."""
    for container in pod["spec"]["containers"]:
        ask: Any = (container.get("readinessProbe") or {}).get("httpGet")
        if not ask:
            continue
        named = {port.get("name"): port["containerPort"] for port in container.get("ports") or []}
        port = named.get(ask["port"], ask["port"])
        try:
            url = f"http://{ip}:{port}{ask['path']}"
            with urllib.request.urlopen(url, timeout=PROBE_SECONDS) as answer:
                return bool(answer.status < 400)
        except (urllib.error.URLError, OSError):
            return False
    return True
