"""Takes in what a discovery saw: keeps it, sets health from it, and notes the differences."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from inventory.discovery.agent import read_report, write_report
from inventory.discovery.base import DiscoveryError, FoundNode
from inventory.discovery.comparing import (
    ABOUT_THE_NODE,
    Comparison,
    Difference,
    IntendedAccelerator,
    compare,
)
from inventory.errors import ObservationFromFutureError, ReportRefusedError
from inventory.facts import loading
from inventory.freshness import CLOCK_TOLERANCE_SECONDS, cutoff
from inventory.models import Accelerator, Cluster, Finding, Node, Observation
from inventory.models.words import Health, HealthReason
from inventory.services.placing import require_vendor
from inventory.vendors.base import FoundAccelerator

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

_READINGS = (
    "observed_at",
    "observed_name",
    "observed_memory_total_mib",
    "observed_memory_used_mib",
    "observed_utilisation",
    "observed_power_watts",
    "observed_temperature_celsius",
)
KEEP_OBSERVATIONS = timedelta(days=30)
_HEALTH = ("health", "health_reason", "health_since")


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
    """Keep an observation; the newest one sets health, readings and findings of the node.

    The same observation again changes nothing. One that arrives late is kept, and that is all.
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
    Cluster.objects.filter(pk=cluster_id).exclude(answered_at__gt=found.seen_at).update(
        answered_at=found.seen_at, error=""
    )
    if node is None:
        _note(observation, [_unknown_node(found)])
    elif node.observed_at is None or node.observed_at < found.seen_at:
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


def _unknown_node(found: FoundNode) -> Difference:
    count = len(found.accelerators)
    models = {_model_of(found.vendor)(device.name) for device in found.accelerators}
    suggestion = {
        "do": "create-node",
        "hostname": found.hostname,
        "model": models.pop() if len(models) == 1 else None,
        "serials": [device.serial for device in sorted(found.accelerators, key=_slot)],
    }
    return Difference(
        Finding.Kind.UNKNOWN_NODE,
        ABOUT_THE_NODE,
        "",
        f"{count} x {found.vendor}",
        suggestion,
    )


def _slot(device: FoundAccelerator) -> int:
    return device.slot


def _model_of(vendor: str) -> Any:
    def slug(name: str) -> str | None:
        return loading.model_by_reported_name().get((vendor, name.strip().lower()))

    return slug


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
        intended=[
            IntendedAccelerator(row.pk, row.slot, row.serial, row.model.slug) for row in live
        ],
        found=found,
        model_of=_model_of(found.vendor),
    )
    _set_readings(live, result, found.seen_at)
    _set_node_health(node, live, found.seen_at)
    _note(observation, result.differences)


def _set_readings(live: Iterable[Accelerator], result: Comparison, seen_at: datetime) -> None:
    for accelerator in live:
        found = result.matched.get(accelerator.pk)
        if found is None:
            _set_health(accelerator, Health.FAILED, HealthReason.MISSING, seen_at)
            continue
        _set_health(accelerator, Health(found.health), _reason(found), seen_at)
        for field, value in _readings(found, seen_at).items():
            setattr(accelerator, field, value)
    Accelerator.objects.bulk_update(live, [*_READINGS, *_HEALTH])


def _readings(found: FoundAccelerator, seen_at: datetime) -> Mapping[str, Any]:
    return {
        "observed_at": seen_at,
        "observed_name": found.name,
        "observed_memory_total_mib": found.memory_total_mib,
        "observed_memory_used_mib": found.memory_used_mib,
        "observed_utilisation": found.utilisation,
        "observed_power_watts": found.power_watts,
        "observed_temperature_celsius": found.temperature_celsius,
    }


def _reason(found: FoundAccelerator) -> HealthReason:
    return HealthReason.NONE if found.health == Health.HEALTHY else HealthReason.VENDOR_REPORT


def _set_node_health(node: Node, live: list[Accelerator], seen_at: datetime) -> None:
    states = {accelerator.health for accelerator in live}
    reasons = {accelerator.health_reason for accelerator in live}
    was = node.health
    if not live or states == {Health.HEALTHY}:
        _set_health(node, Health.HEALTHY, HealthReason.NONE, seen_at)
    else:
        reason = (
            HealthReason.ACCELERATOR_MISSING
            if HealthReason.MISSING in reasons
            else HealthReason.ACCELERATOR_FAILED
        )
        worst = Health.FAILED if states == {Health.FAILED} else Health.DEGRADED
        _set_health(node, worst, reason, seen_at)
    node.observed_at = seen_at
    node.save(update_fields=["observed_at", *_HEALTH, "updated_at"])
    if node.health != was:
        event = "recovered" if node.health == Health.HEALTHY else node.health
        outbox.emit(
            f"consort.node.{event}", subject=node, data={"was": was, "reason": node.health_reason}
        )


def _set_health(
    row: Node | Accelerator, health: Health, reason: HealthReason, seen_at: datetime
) -> None:
    """`health_since` moves only when health or its reason does."""
    if (row.health, row.health_reason) != (health, reason):
        row.health, row.health_reason, row.health_since = health, reason, seen_at


def _note(observation: Observation, differences: Iterable[Difference]) -> None:
    """Open a finding per difference; what is no longer there is resolved.

    A difference that somebody overrode or dismissed stays closed while both values stay the same.
    """
    about = {"cluster_id": observation.cluster_id, "hostname": observation.hostname}
    found = {(each.slot, each.kind): each for each in differences}
    opened = Finding.objects.filter(**about, state=Finding.State.OPEN).select_for_update(
        no_key=True, of=("self",)
    )
    for finding in opened.order_by("pk"):
        difference = found.pop((finding.slot, finding.kind), None)
        if difference is None:
            finding.state = Finding.State.RESOLVED
            finding.closed_at = observation.seen_at
        else:
            _fill(finding, observation, difference)
        finding.save()
    closed = (Finding.State.OVERRIDDEN, Finding.State.DISMISSED)
    settled = set(
        Finding.objects.filter(**about, state__in=closed).values_list(
            "slot", "kind", "intended", "observed"
        )
    )
    for each in found.values():
        if (each.slot, each.kind, each.intended, each.observed) not in settled:
            finding = Finding(**about, node_id=observation.node_id, slot=each.slot, kind=each.kind)
            _fill(finding, observation, each)
            finding.save(force_insert=True)
            _tell(finding)


def _fill(finding: Finding, observation: Observation, difference: Difference) -> None:
    finding.observation = observation
    finding.seen_at = observation.seen_at
    finding.intended = difference.intended[:200]
    finding.observed = difference.observed[:200]
    finding.suggestion = dict(difference.suggestion)


def _tell(finding: Finding) -> None:
    subject = finding.node or finding
    audit.record(
        actor=None,
        action="finding.open",
        subject=subject,
        before={finding.kind: finding.intended},
        after={finding.kind: finding.observed},
    )
    if finding.kind == Finding.Kind.UNKNOWN_NODE:
        outbox.emit("consort.node.discovered", subject=finding)
