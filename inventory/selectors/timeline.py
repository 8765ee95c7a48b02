"""What happened to a node, newest first: decisions of people, observations, differences."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.audit import selectors as audit
from inventory.models import Finding, Node

MOST_MOMENTS = 200


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a node's history."""

    at: datetime
    kind: str
    """audit, observation or finding."""
    what: str
    """Word of the catalogue of its kind: an action, a source, the kind of a finding."""
    who: str
    """User name; empty for the system."""
    reason: str
    before: Any
    after: Any


def timeline(node: Node, *, most: int = MOST_MOMENTS) -> list[Moment]:
    """At most `most` moments of a node the viewer may see, newest first; three queries.

    Of the observations only the latest is told: between two of them, what changed is a finding or a
    change of health.
    """
    moments = [*_decisions(node, most), *_observations(node), *_findings(node, most)]
    return sorted(moments, key=lambda moment: moment.at, reverse=True)[:most]


def _decisions(node: Node, most: int) -> list[Moment]:
    return [
        Moment(
            at=entry.time,
            kind="audit",
            what=entry.action,
            who=entry.actor.username if entry.actor else "",
            reason=entry.reason or entry.message,
            before=entry.before,
            after=entry.after,
        )
        for entry in audit.entries_about(node)[:most]
    ]


def _observations(node: Node) -> list[Moment]:
    return [
        Moment(
            at=observation.seen_at,
            kind="observation",
            what=observation.source,
            who="",
            reason=str(observation.content.get("tool", "")),
            before=None,
            after={"accelerators": len(observation.content.get("accelerators", []))},
        )
        for observation in node.observations.all()[:1]
    ]


def _findings(node: Node, most: int) -> list[Moment]:
    """Findings that a later observation resolved; people's answers are audit entries."""
    resolved = node.findings.filter(state=Finding.State.RESOLVED).order_by("-closed_at", "pk")
    return [
        Moment(
            at=finding.closed_at or finding.seen_at,
            kind="finding",
            what=finding.kind,
            who="",
            reason=finding.reason,
            before={finding.kind: finding.observed},
            after={finding.kind: finding.intended},
        )
        for finding in resolved[:most]
    ]
