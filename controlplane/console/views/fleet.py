"""Pages of the fleet: nodes and one node."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import attention, charts
from controlplane.console import format as fmt
from controlplane.console.findingpage import facts_of
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.console.rolebar import role_bar
from controlplane.console.selectors import fleet as selectors
from controlplane.console.selectors import node as node_selectors
from controlplane.serving.models import Role
from inventory.models import Finding, Node, Observation
from inventory.models.words import Health, HealthReason

_FILTERS = ("q", "vendor", "site", "health", "state", "role")


@login_required
def nodes(request: ConsoleRequest) -> HttpResponse:
    """The list of nodes; the address is the only state of the filters."""
    permissions.require(request.user, "inventory.view_node")
    wanted = {name: request.GET.get(name, "").strip()[:100] for name in _FILTERS}
    page = page_of(request, selectors.filtered_nodes(request.user, wanted))
    rows = selectors.node_rows(page.object_list)
    filters = selectors.node_filters(request.user)
    filtering = any(wanted.values())
    context = {
        "page": page,
        "rows": rows,
        "wanted": wanted,
        "filters": filters,
        "filtering": filtering,
        "total": selectors.nodes_for(request.user).count() if filtering and not rows else None,
        "healths": Health.choices,
        "node_states": Node.State.choices,
        "roles": [*Role.choices, ("unassigned", _("unassigned"))],
        "may_cordon": permissions.allows(request.user, "inventory.cordon_node"),
        "may_import": permissions.allows(request.user, "inventory.import_node"),
        "sources": [
            Source(_("Cluster %(name)s") % {"name": cluster.slug}, cluster.answered_at)
            for cluster in filters.clusters[:6]
        ],
    }
    return render(request, "inventory/nodes.html", context)


@login_required
def node(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One node; `?tab=` chooses what is shown."""
    permissions.require(request.user, "inventory.view_node")
    row = get_object_or_404(selectors.nodes_for(request.user), pk=pk)
    tabs = [
        ("now", _("Now")),
        ("hardware", _("Hardware")),
        ("roles", _("Roles in time")),
        ("cost", _("Cost")),
        ("history", _("History")),
    ]
    tab = request.GET.get("tab", "now")
    tab = tab if tab in dict(tabs) else "now"
    context: dict[str, object] = {
        "node": row,
        "reason": HealthReason(row.effective_reason).label,  # type: ignore[attr-defined]  # annotated
        "tabs": tabs,
        "tab": tab,
        "may_cordon": permissions.allows(request.user, "inventory.cordon_node", row),
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "sources": [Source(_("Observation"), row.observed_at)],
        **_TABS[tab](request, row),
    }
    return render(request, "inventory/node.html", context)


def _now_tab(request: ConsoleRequest, row: Node) -> dict[str, object]:
    now = datetime.now(UTC)
    hours = node_selectors.utilisation_hours(row, since=now - timedelta(days=7))
    points = [charts.Point(hour, value) for hour, value, _evidence in hours]
    chart = charts.LineChart(
        key="util",
        title=_("Utilisation, 7 days"),
        note=_("mean of the accelerators by hour, %"),
        unit="%",
        points=points,
        label=lambda value: f"{fmt.percent(value)} %",
        when=lambda at: f"{fmt.day(at)} {fmt.clock(at, at)[:5]}",
    )
    return {
        "rows": selectors.accelerator_rows(row),
        "chart": chart if points else None,
        "evidence": sorted({evidence for _hour, _value, evidence in hours}),
        "alerts": [
            (alert, attention.told(alert))
            for alert in row.alerts.filter(resolved_at__isnull=True).select_related("accelerator")
        ],
        "open_findings": row.findings.filter(state=Finding.State.OPEN),
    }


def _hardware_tab(request: ConsoleRequest, row: Node) -> dict[str, object]:
    model = row.node_type.accelerator_model
    told = row.observations.filter(source=Observation.Source.KUBERNETES).first()
    return {
        "rows": selectors.accelerator_rows(row),
        "model": model,
        "figures": sorted(model.figures.items()),
        "findings": row.findings.select_related("closed_by", "observation")[:50],
        "told": told,
        "facts": facts_of(told),
    }


def _roles_tab(request: ConsoleRequest, row: Node) -> dict[str, object]:
    now = datetime.now(UTC)
    spans = selectors.role_spans(row, since=now - timedelta(days=35))
    rows = [(span, selectors.ranges(span.slots)) for span in reversed(spans)]
    return {"spans": rows, "bar": role_bar(spans, now=now)}


def _cost_tab(request: ConsoleRequest, row: Node) -> dict[str, object]:
    try:
        return {"cost": node_selectors.node_cost(request.user, row)}
    except permissions.NotPermittedError as error:
        return {"denied": error.facts}


def _history_tab(request: ConsoleRequest, row: Node) -> dict[str, object]:
    return {"moments": node_selectors.timeline(row)}


_TABS = {
    "now": _now_tab,
    "hardware": _hardware_tab,
    "roles": _roles_tab,
    "cost": _cost_tab,
    "history": _history_tab,
}
