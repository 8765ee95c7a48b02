"""Keeps findings in step with what observations differ in, for one node or for many at once."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.operations import outbox
from inventory.discovery.comparing import Difference
from inventory.models import Cluster, Finding, Observation

MOST_ENTRIES = 20
"""So many findings opened at once have an audit entry each; more share one of their cluster."""
MOST_NAMED = 50
Kind, State = Finding.Kind, Finding.State
_FILLED = ("observation", "seen_at", "intended", "observed", "suggestion", "updated_at")
_CLOSED = ("state", "closed_at", "updated_at")


@dataclass(frozen=True, slots=True)
class Look:
    """What one observation of a node differs in, at the time of the look."""

    observation: Observation
    seen_at: datetime
    """Not before the observation: a look that sees the same again makes no other row."""
    differences: Sequence[Difference]

    @property
    def hostname(self) -> str:
        """Of the node, as its findings are stored."""
        return self.observation.hostname


def note(cluster_id: UUID, looks: Sequence[Look]) -> int:
    """Open a finding per difference and resolve what is no longer there; returns how many opened.

    Each source answers for its own findings only: an agent lists serials that a cluster never
    names. A node that nobody planned is resolved by whoever sees it planned. A difference that
    somebody overrode or dismissed stays closed while both values stay the same. A fixed number of
    statements however many nodes there are; the caller has locked the nodes.
    """
    wanted = {
        (look.hostname, each.slot, each.kind): (look, each)
        for look in looks
        for each in look.differences
    }
    by_host = {look.hostname: look for look in looks}
    about = {"cluster_id": cluster_id, "hostname__in": list(by_host)}
    changed: list[Finding] = []
    same: list[Finding] = []
    gone: list[Finding] = []
    opened = Finding.objects.filter(**about, state=State.OPEN).select_related("observation")
    for finding in opened.select_for_update(no_key=True, of=("self",)).order_by("pk"):
        look = by_host[finding.hostname]
        found = wanted.pop((finding.hostname, finding.slot, finding.kind), None)
        if found is None:
            if _may_resolve(finding, look):
                finding.state, finding.closed_at = State.RESOLVED, look.seen_at
                finding.updated_at = timezone.now()
                gone.append(finding)
        elif finding.observation.source == look.observation.source:
            (changed if _differs(finding, *found) else same).append(_fill(finding, *found))
    Finding.objects.bulk_update(changed, _FILLED, batch_size=500)
    _touch(same)
    Finding.objects.bulk_update(gone, _CLOSED, batch_size=500)
    settled = set(
        Finding.objects.filter(**about, state__in=(State.OVERRIDDEN, State.DISMISSED)).values_list(
            "hostname", "slot", "kind", "intended", "observed"
        )
    )
    created = [
        _fill(_blank(cluster_id, look, each), look, each)
        for (hostname, slot, kind), (look, each) in wanted.items()
        if (hostname, slot, kind, each.intended[:200], each.observed[:200]) not in settled
    ]
    Finding.objects.bulk_create(created, batch_size=500)
    _tell(cluster_id, created)
    return len(created)


def _may_resolve(finding: Finding, look: Look) -> bool:
    if finding.kind == Kind.UNKNOWN_NODE and look.observation.node_id is not None:
        return True
    return finding.observation.source == look.observation.source


def _differs(finding: Finding, look: Look, difference: Difference) -> bool:
    before = (finding.observation_id, finding.intended, finding.observed, finding.suggestion)
    return before != (
        look.observation.pk,
        difference.intended[:200],
        difference.observed[:200],
        dict(difference.suggestion),
    )


def _touch(findings: Sequence[Finding]) -> None:
    """Say that they were seen again; looks of one cluster are mostly of one moment."""
    by_time: dict[datetime, list[UUID]] = defaultdict(list)
    for finding in findings:
        by_time[finding.seen_at].append(finding.pk)
    for seen_at, ids in by_time.items():
        Finding.objects.filter(pk__in=ids).update(seen_at=seen_at, updated_at=timezone.now())


def _blank(cluster_id: UUID, look: Look, difference: Difference) -> Finding:
    return Finding(
        cluster_id=cluster_id,
        hostname=look.hostname,
        node=look.observation.node,
        slot=difference.slot,
        kind=difference.kind,
    )


def _fill(finding: Finding, look: Look, difference: Difference) -> Finding:
    finding.observation = look.observation
    finding.seen_at, finding.updated_at = look.seen_at, timezone.now()
    finding.intended = difference.intended[:200]
    finding.observed = difference.observed[:200]
    finding.suggestion = dict(difference.suggestion)
    return finding


def _tell(cluster_id: UUID, created: Sequence[Finding]) -> None:
    if len(created) > MOST_ENTRIES:
        kinds = Counter(finding.kind for finding in created)
        named = ", ".join(finding.hostname for finding in created[:MOST_NAMED])
        audit.record(
            actor=None,
            action="finding.open",
            subject=Cluster.objects.get(pk=cluster_id),
            after=dict(kinds),
            message=named,
        )
    else:
        for finding in created:
            audit.record(
                actor=None,
                action="finding.open",
                subject=finding.node or finding,
                before={finding.kind: finding.intended},
                after={finding.kind: finding.observed},
            )
    unknown = [finding for finding in created if finding.kind == Kind.UNKNOWN_NODE]
    outbox.emit_each(("consort.node.discovered", finding, {}) for finding in unknown)
