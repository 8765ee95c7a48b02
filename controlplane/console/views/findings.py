"""Findings: what was meant beside what was found, oldest first, with what each source said."""

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console.findingpage import row_of
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from inventory import selectors
from inventory.models import Discovery, Finding

_FILTERS = ("q", "cluster", "kind", "state")


@login_required
def findings(request: ConsoleRequest) -> HttpResponse:
    """The list; open findings only, unless a state is asked for."""
    permissions.require(request.user, "inventory.view_finding")
    wanted = {name: request.GET.get(name, "").strip()[:100] for name in _FILTERS}
    seen = selectors.findings_for_viewer(request.user)
    page = page_of(request, _filtered(seen, wanted))
    rows = [row_of(finding) for finding in page.object_list]
    visible = selectors.clusters_for_viewer(request.user)
    runs = list(
        Discovery.objects.filter(cluster__in=visible)
        .select_related("cluster")
        .order_by("cluster__slug")
    )
    is_one_kind = bool(wanted["cluster"] and wanted["kind"]) and not wanted["q"]
    context = {
        "page": page,
        "rows": rows,
        "wanted": wanted,
        "filtering": any(wanted.values()),
        "total": seen.filter(state=Finding.State.OPEN).count() if not rows else None,
        "clusters": visible.order_by("slug").values_list("slug", flat=True),
        "kinds": Finding.Kind.choices,
        "states": Finding.State.choices,
        "runs": runs,
        "may_answer": permissions.allows(request.user, "inventory.override_discovery"),
        "may_accept_all": is_one_kind and wanted["state"] in ("", Finding.State.OPEN),
        "models": selectors.models_for_viewer(request.user).order_by("slug")
        if is_one_kind or any(row.needs_model for row in rows)
        else (),
        "sources": [
            Source(_("Discovery of %(name)s") % {"name": run.cluster.slug}, run.followed_at)
            for run in runs[:6]
        ],
    }
    return render(request, "inventory/findings.html", context)


def _filtered(rows: QuerySet[Finding], wanted: dict[str, str]) -> QuerySet[Finding]:
    rows = rows.filter(state=wanted["state"] or Finding.State.OPEN)
    if wanted["q"]:
        rows = rows.filter(hostname__icontains=wanted["q"])
    for name, path in (("cluster", "cluster__slug"), ("kind", "kind")):
        if wanted[name]:
            rows = rows.filter(**{path: wanted[name]})
    return rows.order_by("created_at", "pk")
