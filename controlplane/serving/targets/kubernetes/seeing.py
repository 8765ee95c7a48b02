"""From a Deployment, its Pods and their events to what is true of an engine; pure, never raises.

`observedGeneration` comes first: a status that is about an earlier specification says nothing of
the present one. What cannot be read is unknown, which neither starts nor ends anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.serving.targets.base import SeenCondition, SeenEngine, SeenState
from controlplane.serving.targets.kubernetes.drift import differences
from controlplane.serving.targets.kubernetes.pods import SeenPod, look
from controlplane.serving.targets.kubernetes.shapes import condition, dig, text, whole
from inventory.kubernetes.labels import GENERATION, SPEC_HASH

UNEXPLAINED = frozenset({"Pending", "ContainerCreating", "PodInitializing", "NoPod"})
"""Reasons that say only that nothing happened yet: events may know more."""
_STATUS_MISSING = SeenCondition(
    type="Started", status="Unknown", reason="Unreadable",
    message="The cluster's answer about this engine cannot be read.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sight:
    """What is true of an engine, and what else a target should find out."""

    engine: SeenEngine
    suspect_url: str = ""
    """Address to try, because the node of a running engine reports nothing."""
    is_unexplained: bool = False
    """It does not start, and events may say why."""


def see(
    name: str,
    *,
    wanted: Mapping[str, Any] | None,
    found: Mapping[str, Any] | None,
    pods: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]] = (),
) -> Sight:
    """The engine of that name; `found` is its Deployment, None when there is none.

    `wanted` is the manifest as it should be, to tell drift.
    """
    seen = [look(pod) for pod in pods]
    if found is None:
        return Sight(_without_deployment(name, seen))
    asked = text(found, "metadata", "annotations", SPEC_HASH)
    generation = whole(found, "metadata", "generation")
    reached = whole(found, "status", "observedGeneration")
    current = _current(seen, asked)
    if generation is None or not isinstance(found.get("status", {}), Mapping):
        return Sight(SeenEngine(name=name, state="unknown", conditions=(_STATUS_MISSING,)))
    if current is not None and not current.uid:
        return Sight(SeenEngine(name=name, state="unknown", conditions=(_STATUS_MISSING,)))
    started, ready, scheduled = _conditions(found, current, seen, events)
    state = _state(found, current, seen)
    if (reached or 0) < generation:
        started = _not_taken_up(generation, reached)
        state = "starting" if state == "running" else state
    drifted = _drift(wanted, found, asked)
    engine = SeenEngine(
        name=name,
        state=state,
        spec_hash=current.spec_hash if current is not None and current.is_up else None,
        asked_spec_hash=asked or None,
        generation=_number(text(found, "metadata", "annotations", GENERATION)),
        url=current.url if current is not None and current.url else None,
        instance=_instance(current, seen),
        starts=0 if current is None else current.restarts + 1,
        exit_code=None if current is None or current.runs else current.exit_code,
        exited_at=None if current is None or current.runs else current.exited_at,
        failure="" if started.status == "True" else _sentence(started),
        conditions=(scheduled, started, ready, *drifted),
        has_drifted=any(row.status == "True" for row in drifted),
    )
    is_suspect = current is not None and current.is_suspect and current.is_up
    return Sight(
        engine,
        suspect_url=current.url if current is not None and is_suspect else "",
        is_unexplained=state == "starting" and started.reason in UNEXPLAINED and not events,
    )


def _without_deployment(name: str, seen: Sequence[SeenPod]) -> SeenEngine:
    """Absent once the Pods are gone as well: until then a device may still be in use."""
    if not seen:
        return SeenEngine(name=name, state="absent")
    running = next((pod for pod in seen if pod.runs), None)
    return SeenEngine(
        name=name,
        state="ending",
        instance=running.instance if running else None,
        url=(running.url or None) if running else None,
        failure=f"Pods that are not gone yet: {', '.join(sorted(pod.name for pod in seen))}.",
    )


def _current(seen: Sequence[SeenPod], asked: str) -> SeenPod | None:
    """The Pod that counts: of what was asked for, running rather than not, the older one."""
    candidates = [pod for pod in seen if not pod.is_ending]
    ordered = sorted(
        candidates,
        key=lambda pod: (pod.spec_hash != asked, pod.is_over, not pod.is_up, pod.created, pod.uid),
    )
    return next(iter(ordered), None)


def _state(found: Mapping[str, Any], current: SeenPod | None, seen: Sequence[SeenPod]) -> SeenState:
    if dig(found, "metadata", "deletionTimestamp") is not None:
        return "ending"
    if current is None:
        return "ending" if seen else "starting"
    if current.is_up and current.url:
        return "running"
    return "exited" if current.has_ended or current.is_over else "starting"


def _instance(current: SeenPod | None, seen: Sequence[SeenPod]) -> str | None:
    """Process that answers, also one that is about to end: it still finishes its requests."""
    if current is not None:
        return current.instance if current.is_up else None
    return next((pod.instance for pod in seen if pod.runs), None)


def _conditions(
    found: Mapping[str, Any],
    current: SeenPod | None,
    seen: Sequence[SeenPod],
    events: Sequence[Mapping[str, Any]],
) -> tuple[SeenCondition, SeenCondition, SeenCondition]:
    """Started, Ready, Scheduled."""
    if current is None:
        started, scheduled = _no_pod(found, seen, events)
        ready = SeenCondition(type="Ready", status="False", reason=started.reason)
        return started, ready, scheduled
    started = current.started
    if started.status == "False" and started.reason in UNEXPLAINED:
        started = _from_events(events, {current.uid, current.name}) or started
    late = condition(found, "Progressing")
    if started.status == "False" and text(late, "reason") == "ProgressDeadlineExceeded":
        sentence = f"{_sentence(started)} {text(late, 'message')}".strip()
        reason = "ProgressDeadlineExceeded" if started.reason in UNEXPLAINED else started.reason
        started = SeenCondition(type="Started", status="False", reason=reason, message=sentence)
    return started, current.ready, current.scheduled


def _no_pod(
    found: Mapping[str, Any], seen: Sequence[SeenPod], events: Sequence[Mapping[str, Any]]
) -> tuple[SeenCondition, SeenCondition]:
    """Started and Scheduled of an engine that has no Pod, or only one that is ending."""
    failure = condition(found, "ReplicaFailure")
    said = [_from_events(events, {text(found, "metadata", "name")}, is_prefix=True)]
    if text(failure, "status") == "True":
        reason, message = text(failure, "reason") or "FailedCreate", text(failure, "message")
        said.insert(
            0, SeenCondition(type="Started", status="False", reason=reason, message=message)
        )
    if seen:
        message = f"The Pod before it has not ended: {seen[0].name}."
        said.append(
            SeenCondition(type="Started", status="False", reason="OldPodEnding", message=message)
        )
    nothing = SeenCondition(
        type="Started", status="False", reason="NoPod", message="There is no Pod of it yet."
    )
    started = next((row for row in said if row is not None), nothing)
    scheduled = SeenCondition(
        type="Scheduled", status="False", reason=started.reason, message=started.message
    )
    return started, scheduled


def _from_events(
    events: Sequence[Mapping[str, Any]], names: set[str], *, is_prefix: bool = False
) -> SeenCondition | None:
    """The latest warning about the object, or about one made from it when `is_prefix`."""
    about = []
    for event in events:
        told = {text(event, "involvedObject", "uid"), text(event, "involvedObject", "name")}
        same = told & (names - {""})
        made = is_prefix and any(
            one.startswith(f"{name}-") for one in told for name in names if name
        )
        if text(event, "type") == "Warning" and text(event, "reason") and (same or made):
            about.append(event)
    if not about:
        return None
    last = max(about, key=_when)
    return SeenCondition(
        type="Started", status="False", reason=text(last, "reason"), message=text(last, "message")
    )


def _when(event: Mapping[str, Any]) -> str:
    """Times of the API are texts of one form, so they sort."""
    return (
        text(event, "series", "lastObservedTime")
        or text(event, "lastTimestamp")
        or text(event, "eventTime")
        or text(event, "metadata", "creationTimestamp")
    )


def _drift(
    wanted: Mapping[str, Any] | None, found: Mapping[str, Any], asked: str
) -> list[SeenCondition]:
    """Nothing while something else was applied than what is wanted: that is a change, no drift."""
    if wanted is None or asked != text(wanted, "metadata", "annotations", SPEC_HASH):
        return []
    differs = differences(wanted, found)
    if not differs:
        return [SeenCondition(type="Drifted", status="False", reason="AsApplied")]
    message = "; ".join(str(row) for row in differs)
    return [SeenCondition(type="Drifted", status="True", reason="FieldsDiffer", message=message)]


def _not_taken_up(generation: int, reached: int | None) -> SeenCondition:
    at = "none yet" if reached is None else str(reached)
    message = f"The cluster has not taken up generation {generation}; it reached {at}."
    return SeenCondition(type="Started", status="Unknown", reason="NotTakenUp", message=message)


def _sentence(row: SeenCondition) -> str:
    return f"{row.reason}: {row.message}" if row.message else row.reason


def _number(written: str) -> int | None:
    return int(written) if written.isascii() and written.isdecimal() else None
