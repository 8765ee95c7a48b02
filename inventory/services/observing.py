"""Takes in what a discovery saw: keeps it, sets health from it, and notes the differences."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.operations import outbox
from inventory.discovery.agent import read_report, write_report
from inventory.discovery.base import DiscoveryError, FoundNode
from inventory.discovery.comparing import Comparison, compare
from inventory.discovery.health import NOT_SAID, Verdict
from inventory.errors import ObservationFromFutureError, ReportRefusedError
from inventory.freshness import CLOCK_TOLERANCE_SECONDS, cutoff, is_stale
from inventory.models import Accelerator, Cluster, Finding, Node, Observation
from inventory.models.words import Health, HealthReason
from inventory.services.folders import keep_folders
from inventory.services.judging import (
    HEALTH,
    READINGS,
    devices_view,
    intended,
    model_of,
    readings,
    reason_of,
    set_health,
    set_node_health,
    tell_health,
    unknown_node,
)
from inventory.services.noting import Look, note
from inventory.services.placing import require_vendor

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

KEEP_OBSERVATIONS = timedelta(days=30)


def record_report(*, cluster_id: UUID, hostname: str, report: Any, actor: "User") -> Observation:
    """Take in the JSON of the agent of the node `hostname`; an agent speaks of no other node.

    Raises ReportRefusedError or as record_observation.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    permissions.require(actor, "inventory.report_node", cluster)
    try:
        found = read_report(report)
    except DiscoveryError as error:
        raise ReportRefusedError(why=str(error)) from error
    if found.hostname.lower() != hostname.lower():
        raise ReportRefusedError(
            why=_("it is of the node '{other}', not of '{node}'.").format(
                other=found.hostname, node=hostname
            )
        )
    return record_observation(cluster_id=cluster_id, found=found)


@transaction.atomic
def record_observation(*, cluster_id: UUID, found: FoundNode) -> Observation:
    """Keep an agent's observation; the newest sets health, readings and findings of the node.

    What a cluster sees comes in through `recording.record_looks`. The same observation again
    changes nothing; one that arrives late is kept, and that is all.
    Raises UnknownVendorError, or ObservationFromFutureError if the node's clock is more than 30 s
    ahead.
    """
    require_vendor(found.vendor)
    ahead = (found.seen_at - timezone.now()).total_seconds()
    if ahead > CLOCK_TOLERANCE_SECONDS:
        raise ObservationFromFutureError(node=found.hostname, seconds=round(ahead))
    node = (
        Node.objects.select_for_update(no_key=True, of=("self",))
        .filter(cluster_id=cluster_id, hostname__iexact=found.hostname)
        .exclude(state=Node.State.RETIRED)
        .first()
    )
    observation, is_first = Observation.objects.get_or_create(
        cluster_id=cluster_id,
        hostname=node.hostname if node else found.hostname,
        source=found.source,
        seen_at=found.seen_at,
        defaults={"node": node, "vendor": found.vendor, "content": write_report(found)},
    )
    if not is_first:
        return observation
    if node is not None:
        keep_folders(node, found)
    # A report says nothing of whether an API server answers.
    asked = Cluster.objects.filter(pk=cluster_id).exclude(kind=Cluster.Kind.KUBERNETES)
    asked.exclude(answered_at__gt=found.seen_at).update(answered_at=found.seen_at, error="")
    if node is None:
        look = Look(observation, found.seen_at, [unknown_node(found)])
        note(cluster_id, [look])
    elif node.agent_seen_at is None or node.agent_seen_at < found.seen_at:
        _merge(node, observation, found)
    return observation


def mark_stale(*, now: datetime | None = None) -> int:
    """Set health to unknown where the last observation is too old; returns the number of nodes.

    Safe to run at any time and twice: it only touches rows that are not marked yet.
    """
    limit = cutoff(now)
    stale = {"health": Health.UNKNOWN, "health_reason": HealthReason.STALE}
    marked = 0
    rows = Node.objects.filter(observed_at__lt=limit).exclude(state=Node.State.RETIRED)
    for node_id in rows.exclude(**stale).order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            node = Node.objects.select_for_update(no_key=True, of=("self",)).get(pk=node_id)
            if node.observed_at is None or node.observed_at >= limit:
                continue
            changed = {**stale, "health_since": node.observed_at, "updated_at": timezone.now()}
            Node.objects.filter(pk=node_id).update(**changed)
            live = Accelerator.objects.filter(node=node).exclude(state=Accelerator.State.RETIRED)
            live.exclude(health_reason=HealthReason.NEVER_OBSERVED).update(**changed)
            outbox.emit("consort.node.stale", subject=node)
            marked += 1
    return marked


def forget_observations(*, now: datetime | None = None) -> int:
    """Delete observations older than 30 days; returns how many.

    The newest of a hostname stays, and so does what a finding rests on.
    """
    newer = Observation.objects.filter(
        cluster=OuterRef("cluster"), hostname=OuterRef("hostname"), seen_at__gt=OuterRef("seen_at")
    )
    findings = Finding.objects.filter(observation=OuterRef("pk"))
    old = Observation.objects.filter(seen_at__lt=(now or timezone.now()) - KEEP_OBSERVATIONS)
    deleted, _per_table = old.filter(Exists(newer), ~Exists(findings)).delete()
    return deleted


def _merge(node: Node, observation: Observation, found: FoundNode) -> None:
    live = list(
        Accelerator.objects.select_for_update(no_key=True, of=("self",))
        .filter(node=node)
        .exclude(state=Accelerator.State.RETIRED)
        .select_related("model")
        .order_by("pk")
    )
    result = compare(
        vendor=node.vendor,
        intended=intended(live),
        found=found,
        model_of=model_of(found.vendor),
    )
    _set_readings(live, result, found.seen_at)
    node.agent_seen_at = found.seen_at
    was = set_node_health(node, seen_at=found.seen_at, views=_views(node, live, found.seen_at))
    node.save(update_fields=["observed_at", "agent_seen_at", *HEALTH, "updated_at"])
    tell_health([(node, was)])
    note(observation.cluster_id, [Look(observation, found.seen_at, result.differences)])


def _set_readings(live: Iterable[Accelerator], result: Comparison, seen_at: datetime) -> None:
    for accelerator in live:
        found = result.matched.get(accelerator.pk)
        if found is None:
            set_health(accelerator, Health.FAILED, HealthReason.MISSING, seen_at)
            continue
        set_health(accelerator, Health(found.health), reason_of(found), seen_at)
        for field, value in readings(found, seen_at).items():
            setattr(accelerator, field, value)
    Accelerator.objects.bulk_update(live, [*READINGS, *HEALTH])


def _views(node: Node, live: Sequence[Accelerator], seen_at: datetime) -> list[Verdict]:
    """The devices' view, and the cluster's if it is fresh and says something."""
    views = [devices_view(live)]
    cluster: Verdict = (node.cluster_health, node.cluster_reason)
    if (
        node.cluster_health
        and cluster != NOT_SAID
        and not is_stale(node.cluster_seen_at, now=seen_at)
    ):
        views.append(cluster)
    return views
