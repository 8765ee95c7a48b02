"""The list "Needs you": what a person should look at, worst first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.urls import reverse
from django.utils.translation import gettext as _

from controlplane.console import format as fmt
from controlplane.console.selectors import changes, clusters, overview
from controlplane.console.selectors.pools import PoolRow
from controlplane.serving.models import ChangePlan, Router
from controlplane.telemetry.models import Alert
from controlplane.tenancy.models import User
from inventory.models import Accelerator, Node
from inventory.models.words import HealthReason


@dataclass(frozen=True, slots=True)
class Todo:
    """One line: a glyph, what it is, a link to it, the numbers, and since when."""

    state: str
    lead: str
    name: str
    url: str
    detail: str
    since: datetime | None


def todos(user: User, *, pools: Sequence[PoolRow], routers: Sequence[Router]) -> list[Todo]:
    """Missed objectives, plans to approve, silent routers and clusters, alerts, health."""
    alerts = overview.open_alerts(user)
    named = {alert.accelerator_id for alert in alerts} | {alert.node_id for alert in alerts}
    return [
        *(_missed(row) for row in pools if row.slo == "missed"),
        *(_waiting(plan) for plan in changes.waiting_for(user)),
        *(_silent(router) for router in routers if is_silent(router)),
        *(_unreached(row) for row in clusters.clusters_in_trouble(user)),
        *(_alert(alert) for alert in alerts),
        *(_sick(row) for row in overview.sick_accelerators(user) if row.pk not in named),
        *(_unknown(node) for node in overview.unknown_nodes(user) if node.pk not in named),
    ]


def _missed(row: PoolRow) -> Todo:
    parts = []
    pool, service = row.pool, row.service
    if _above(service.ttft_p95, pool.slo_ttft_p95_seconds):
        parts.append(
            _("TTFT p95 is %(value)s s, target %(target)s s")
            % {
                "value": fmt.number(service.ttft_p95, 2),
                "target": fmt.number(pool.slo_ttft_p95_seconds, 2),
            }
        )
    if _above(service.tpot_p95, pool.slo_tpot_p95_seconds):
        parts.append(
            _("TPOT p95 is %(value)s ms, target %(target)s ms")
            % {"value": _ms(service.tpot_p95), "target": _ms(pool.slo_tpot_p95_seconds)}
        )
    return Todo(
        state="missed",
        lead=_("SLO missed:"),
        name=pool.slug,
        url=reverse("console:pool", args=[pool.pk]),
        detail=", ".join(parts),
        since=None,
    )


def _above(value: float | None, target: float | None) -> bool:
    return value is not None and target is not None and value > target


def _ms(seconds: float | None) -> str:
    return fmt.number(None if seconds is None else seconds * 1000)


def _waiting(plan: ChangePlan) -> Todo:
    return Todo(
        state="proposed",
        lead=_("Waits for your approval:"),
        name=plan.number,
        url=reverse("console:change", args=[plan.pk]),
        detail=_("%(pool)s, author %(author)s, expires %(when)s")
        % {
            "pool": plan.pool.slug,
            "author": plan.author.display_name,
            "when": fmt.clock(plan.expires_at),
        },
        since=plan.proposed_at,
    )


def is_silent(router: Router) -> bool:
    """True if a router in use was not heard for 15 seconds."""
    if not router.enabled:
        return False
    if router.heard_at is None:
        return True
    return (datetime.now(UTC) - router.heard_at).total_seconds() > overview.SILENT_SECONDS


def _silent(router: Router) -> Todo:
    return Todo(
        state="silent",
        lead=_("Router is silent:"),
        name=router.name,
        url=reverse("console:routers"),
        detail=router.failure,
        since=router.heard_at,
    )


def _unreached(row: clusters.ClusterRow) -> Todo:
    return Todo(
        state=row.cluster.connection or "unknown",
        lead=_("Cluster is not reached:"),
        name=row.cluster.slug,
        url=reverse("console:cluster", args=[row.cluster.pk]),
        detail=row.trouble.what if row.trouble else "",
        since=row.cluster.answered_at,
    )


def _alert(alert: Alert) -> Todo:
    if alert.kind == Alert.Kind.SLOWER_THAN_CLASS:
        state, lead = "degraded", _("Slower than its class:")
    else:
        state, lead = "unknown", _("Not scraped:")
    place = alert.node.hostname
    if alert.accelerator is not None:
        place = f"{place}/{alert.accelerator.slot}"
    return Todo(
        state=state,
        lead=lead,
        name=place,
        url=reverse("console:node", args=[alert.node_id]),
        detail=told(alert),
        since=alert.since,
    )


def told(alert: Alert) -> str:
    """What the figures behind an alert say."""
    if alert.kind != Alert.Kind.SLOWER_THAN_CLASS:
        return _("the exporter answers no more; values are the last known ones")
    share = alert.facts.get("share_of_class")
    if not share:
        return ""
    return _("output while busy is %(share)s %% of that of its sisters") % {
        "share": fmt.percent(share)
    }


def _sick(device: Accelerator) -> Todo:
    return Todo(
        state=device.health,
        lead=_("Health:"),
        name=f"{device.node.hostname}/{device.slot}",
        url=reverse("console:node", args=[device.node_id]),
        detail=str(device.get_health_reason_display()),
        since=device.health_since,
    )


def _unknown(node: Node) -> Todo:
    return Todo(
        state="unknown",
        lead=_("Health unknown:"),
        name=node.hostname,
        url=reverse("console:node", args=[node.pk]),
        detail=str(HealthReason(node.effective_reason).label),  # type: ignore[attr-defined]  # annotated
        since=node.health_since,
    )
