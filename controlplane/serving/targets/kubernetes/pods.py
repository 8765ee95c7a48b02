"""One Pod of an engine as it was seen, and why it does not answer yet, in the cluster's words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.serving.targets.base import SeenCondition
from controlplane.serving.targets.kubernetes.shapes import (
    condition,
    dig,
    is_true,
    moment,
    rows,
    text,
    whole,
)
from inventory.kubernetes.labels import SPEC_HASH

CONTAINER = "engine"
LOADING = "Loading"
"""The container runs and does not answer yet: an engine reads its weights for minutes."""
NODE_LOST = "NodeLost"
_ENDED_BY_TAINT = "DeletionByTaintManager"
_RETRIED = frozenset({"CrashLoopBackOff"})
"""Reasons of waiting after an end; others are reasons why it never ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """What matters of a Pod. Empty text and None: the cluster does not say."""

    name: str
    uid: str
    created: str
    spec_hash: str
    url: str
    is_ending: bool
    is_over: bool
    """Its containers ended for good; its controller makes another one."""
    runs: bool
    """The process of the engine runs, as far as was reported."""
    is_up: bool
    """It runs and once answered: ready, or past its start-up probe."""
    is_suspect: bool
    """Its node reports nothing any more, so the rest is what was true before."""
    restarts: int
    exit_code: int | None
    exited_at: float | None
    has_ended: bool
    """The engine ran, ended, and waits to be started again."""
    scheduled: SeenCondition
    started: SeenCondition
    ready: SeenCondition

    @property
    def instance(self) -> str | None:
        """Changes with each start of the process; None while none runs."""
        return f"{self.uid}:{self.restarts}" if self.runs and self.uid else None


def look(pod: Mapping[str, Any]) -> SeenPod:
    """Read a Pod; never raises."""
    status = _engine_status(pod)
    suspect, runs = _is_suspect(pod, status), dig(status, "state", "running") is not None
    is_ready = text(condition(pod, "Ready"), "status") == "True"
    ended = dig(status, "state", "terminated") or dig(status, "lastState", "terminated")
    return SeenPod(
        name=text(pod, "metadata", "name"),
        uid=text(pod, "metadata", "uid"),
        created=text(pod, "metadata", "creationTimestamp"),
        spec_hash=text(pod, "metadata", "annotations", SPEC_HASH),
        url=_url(pod),
        is_ending=dig(pod, "metadata", "deletionTimestamp") is not None,
        is_over=text(pod, "status", "phase") in {"Failed", "Succeeded"},
        runs=runs,
        is_up=runs and (is_ready or is_true(status, "started") or suspect),
        is_suspect=suspect,
        restarts=max(0, whole(status, "restartCount") or 0),
        exit_code=whole(ended, "exitCode"),
        exited_at=moment(ended, "finishedAt"),
        has_ended=_has_ended(status),
        scheduled=_scheduled(pod),
        started=_started(pod, status),
        ready=_ready(pod, suspect=suspect),
    )


def _engine_status(pod: Any) -> Mapping[str, Any]:
    """Status of the engine's container; of the only one where it has another name."""
    found = rows(pod, "status", "containerStatuses")
    named = [row for row in found if row.get("name") == CONTAINER]
    return next(iter(named or found), {})


def _url(pod: Any) -> str:
    address, port = text(pod, "status", "podIP"), _port(pod)
    if not address or port is None:
        return ""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}"


def _port(pod: Any) -> int | None:
    containers = rows(pod, "spec", "containers")
    named = [row for row in containers if row.get("name") == CONTAINER] or containers
    ports = rows(next(iter(named), None), "ports")
    http = [row for row in ports if row.get("name") == "http"] or ports
    number = whole(next(iter(http), None), "containerPort")
    return number if number is not None and 0 < number < 65536 else None


def _is_suspect(pod: Any, status: Mapping[str, Any]) -> bool:
    """The node controller speaks for a kubelet that is silent."""
    if text(pod, "status", "phase") == "Unknown" or text(pod, "status", "reason") == NODE_LOST:
        return True
    ended_by = text(condition(pod, "DisruptionTarget"), "reason")
    if ended_by == _ENDED_BY_TAINT and dig(pod, "metadata", "deletionTimestamp") is not None:
        return True
    # A kubelet sets both together; the node controller only takes the Pod's condition away.
    is_unready = text(condition(pod, "Ready"), "status") in {"False", "Unknown"}
    return is_unready and is_true(status, "ready") and _all_ready(pod)


def _all_ready(pod: Any) -> bool:
    statuses = rows(pod, "status", "containerStatuses")
    has_gates = bool(rows(pod, "spec", "readinessGates"))
    return all(is_true(row, "ready") for row in statuses) and not has_gates


def _has_ended(status: Mapping[str, Any]) -> bool:
    waits = text(status, "state", "waiting", "reason") in _RETRIED
    return waits or dig(status, "state", "terminated") is not None


def _scheduled(pod: Any) -> SeenCondition:
    found = condition(pod, "PodScheduled")
    if text(found, "status") == "True" or text(pod, "spec", "nodeName"):
        node = text(pod, "spec", "nodeName")
        return SeenCondition(type="Scheduled", status="True", reason="Bound", message=node)
    if text(found, "status") == "False":
        reason, message = text(found, "reason") or "Unschedulable", text(found, "message")
        return SeenCondition(type="Scheduled", status="False", reason=reason, message=message)
    return SeenCondition(type="Scheduled", status="Unknown", reason="NotScheduledYet")


def _started(pod: Any, status: Mapping[str, Any]) -> SeenCondition:
    if dig(status, "state", "running") is not None and text(pod, "status", "phase") != "Failed":
        if is_true(status, "started") or is_true(status, "ready"):
            return SeenCondition(type="Started", status="True", reason="Running")
        return _not_started(LOADING, "The container runs and its start-up probe has not passed.")
    place = _scheduled(pod)
    if place.status == "False":
        return _not_started(place.reason, place.message)
    if text(pod, "status", "phase") in {"Failed", "Succeeded"}:
        reason = text(pod, "status", "reason") or text(pod, "status", "phase")
        return _not_started(reason, text(pod, "status", "message") or _how_ended(status))
    reason, message = _init_waits_for(pod) or _waits_for(status)
    return _not_started(reason or "Pending", message)


def _init_waits_for(pod: Any) -> tuple[str, str] | None:
    """What comes before the engine and is not done; None when nothing hinders."""
    for container in rows(pod, "status", "initContainerStatuses"):
        reason, message = _waits_for(container)
        is_done = whole(container, "state", "terminated", "exitCode") == 0
        if reason and reason != "PodInitializing" and not is_done:
            return reason, f"{text(container, 'name')}: {message}".strip(": ")
    return None


def _not_started(reason: str, message: str) -> SeenCondition:
    return SeenCondition(type="Started", status="False", reason=reason, message=message)


def _waits_for(status: Any) -> tuple[str, str]:
    """Reason and message of a container that does not run; ("", "") when there is none to tell."""
    reason = text(status, "state", "waiting", "reason")
    if reason:
        parts = [_how_ended(status), text(status, "state", "waiting", "message")]
        return reason, " ".join(part for part in parts if part)
    if dig(status, "state", "terminated") is not None:
        return text(status, "state", "terminated", "reason") or "Terminated", _how_ended(status)
    return "", ""


def _how_ended(status: Any) -> str:
    """Such as "OOMKilled, exit code 137, restarts: 3."; "" for one that never ended."""
    ended = dig(status, "state", "terminated") or dig(status, "lastState", "terminated")
    if not isinstance(ended, Mapping):
        return ""
    code, restarts = whole(ended, "exitCode"), whole(status, "restartCount")
    parts = [
        text(ended, "reason") or "ended",
        "" if code is None else f"exit code {code}",
        "" if restarts is None else f"restarts: {restarts}",
    ]
    said = ", ".join(part for part in parts if part)
    message = text(ended, "message").strip()
    return f"{said}. {message}".strip()


def _ready(pod: Any, *, suspect: bool) -> SeenCondition:
    found = condition(pod, "Ready")
    if suspect:
        node = text(pod, "spec", "nodeName") or "of the Pod"
        message = f"Node {node} reports nothing. {text(found, 'message')}".strip()
        return SeenCondition(type="Ready", status="Unknown", reason=NODE_LOST, message=message)
    if text(found, "status") == "True":
        return SeenCondition(type="Ready", status="True", reason="Ready")
    if text(found, "status") == "False":
        reason, message = text(found, "reason") or "NotReady", text(found, "message")
        return SeenCondition(type="Ready", status="False", reason=reason, message=message)
    return SeenCondition(type="Ready", status="Unknown", reason="NotReported")
