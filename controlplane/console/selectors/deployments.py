"""Engines as they are wanted and seen, with the one fact that explains most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet

from controlplane.serving import selectors
from controlplane.serving.hints import hint_of
from controlplane.serving.models import Endpoint, Pool, Workload
from controlplane.tenancy.models import User

_ORDER = ("TargetReachable", "Applied", "Scheduled", "Started", "Ready", "Serving")
"""Conditions in the order in which they become true; the first that is not explains the rest."""
_IS_BAD_WHEN_TRUE = "Drifted"

ENTERED = Q(desired_state=Workload.Desired.RUNNING)
NOT_THERE = ~Q(observed_generation=F("generation")) | ~Q(observed__state="running")


@dataclass(frozen=True, slots=True)
class Why:
    """The condition that explains why an engine is not as wanted, in the target's words."""

    type: str
    reason: str
    message: str
    at: str
    hint: str
    """What to do about it; "" when nothing is known."""


def deployments_for(
    viewer: User, *, pool: str = "", cluster: str = "", show: str = ""
) -> QuerySet[Workload]:
    """Engines, by name; those that have neither a role nor a process only with `show="all"`.

    `show="waiting"` leaves those that should run and do not.
    """
    rows = selectors.workloads_for_viewer(viewer).select_related(
        "pool", "node__cluster", "accelerator__model"
    )
    if pool:
        rows = rows.filter(pool__slug=pool)
    if cluster:
        rows = rows.filter(node__cluster__slug=cluster)
    if show == "waiting":
        return rows.filter(ENTERED & NOT_THERE).order_by("name")
    if show != "all":
        rows = rows.exclude(desired_state=Workload.Desired.ABSENT, observed__state="absent")
    return rows.order_by("name")


def choices_of(viewer: User) -> dict[str, list[str]]:
    """Pools and clusters that have engines, for the filters."""
    rows = selectors.workloads_for_viewer(viewer)
    pools = selectors.pools_for_viewer(viewer).filter(state=Pool.State.ACTIVE)
    clusters = rows.order_by("node__cluster__slug").values_list("node__cluster__slug", flat=True)
    return {
        "pools": list(pools.order_by("slug").values_list("slug", flat=True)),
        "clusters": list(clusters.distinct()),
    }


def lives_of(workload: Workload) -> QuerySet[Endpoint]:
    """Processes that the engine had, newest first."""
    return workload.endpoints.order_by("-created_at")[:20]


def state_of(workload: Workload) -> str:
    """One word: what is seen, or what is waited for."""
    seen = str(workload.observed.get("state") or "unknown")
    if workload.desired_state == Workload.Desired.ABSENT:
        return "stopped" if seen == "absent" else "stopping"
    if seen == "absent":
        return "pending"
    is_wanted = workload.observed_generation == workload.generation
    return "starting" if seen == "running" and not is_wanted else seen


def why(workload: Workload) -> Why | None:
    """The first condition that does not hold, else drift; None if all is as wanted."""
    found = {row["type"]: row for row in workload.conditions}
    if workload.desired_state == Workload.Desired.RUNNING:
        for name in _ORDER:
            if name in found and found[name]["status"] != "True":
                return _why(found[name])
    elif found.get("TargetReachable", {}).get("status") == "Unknown":
        return _why(found["TargetReachable"])
    drift = found.get(_IS_BAD_WHEN_TRUE)
    return _why(drift) if drift and drift["status"] == "True" else None


def _why(condition: Mapping[str, Any]) -> Why:
    return Why(
        type=condition["type"],
        reason=condition["reason"],
        message=condition["message"],
        at=condition["at"],
        hint=hint_of(condition),
    )
