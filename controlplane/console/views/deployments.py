"""Pages of engines on their targets."""

from datetime import datetime
from uuid import UUID

import yaml
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import polling
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.console.selectors import deployments as selectors
from controlplane.serving import services
from controlplane.serving.hints import hint_of
from controlplane.serving.models import Workload
from controlplane.serving.targets.base import TargetRefusedError, TargetUnavailableError

SHOWN = ("", "waiting", "all")


@login_required
def deployments(request: ConsoleRequest) -> HttpResponse:
    """Engines: wanted, seen, and why they are not there yet."""
    permissions.require(request.user, "serving.view_workload")
    wanted = {name: request.GET.get(name, "")[:120] for name in ("pool", "cluster", "show")}
    if wanted["show"] not in SHOWN:
        wanted["show"] = ""
    page = page_of(request, selectors.deployments_for(request.user, **wanted))
    seen = [row.observed_at for row in page if row.observed_at]
    context = {
        "page": page,
        "rows": [(row, selectors.state_of(row), selectors.why(row)) for row in page],
        "wanted": wanted,
        "choices": selectors.choices_of(request.user),
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "sources": [Source(_("Targets"), max(seen, default=None), expected_seconds=30)],
        "refresh_seconds": 10,
    }
    return polling.page_or_fragment(
        request,
        page="serving/deployments.html",
        fragment="serving/_deployments.html",
        context=context,
    )


@login_required
def deployment(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One engine: conditions, what it is asked to be, and its earlier processes."""
    permissions.require(request.user, "serving.view_workload")
    row = get_object_or_404(selectors.deployments_for(request.user, show="all"), pk=pk)
    context = {
        "row": row,
        "state": selectors.state_of(row),
        "why": selectors.why(row),
        "conditions": [
            {**one, "at": datetime.fromisoformat(one["at"]), "hint": hint_of(one)}
            for one in row.conditions
        ],
        "manifests": _manifests(row),
        "lives": selectors.lives_of(row),
        "sources": [Source(_("Targets"), row.observed_at, expected_seconds=30)],
        "refresh_seconds": 10,
    }
    return polling.page_or_fragment(
        request,
        page="serving/deployment.html",
        fragment="serving/_deployment.html",
        context=context,
    )


@login_required
def logs(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """The end of the engine's output, or the sentence why there is none."""
    row = get_object_or_404(selectors.deployments_for(request.user, show="all"), pk=pk)
    context: dict[str, object] = {"row": row}
    try:
        context["text"] = services.workload_logs(workload_id=row.pk, actor=request.user)
    except (TargetUnavailableError, TargetRefusedError) as error:
        context["error"] = str(error)
    response = render(request, "serving/_deployment_logs.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _manifests(row: Workload) -> str:
    """Objects that a cluster is asked for, as YAML; "" where there are none."""
    found = row.desired.get("manifests") or []
    return yaml.safe_dump_all(found, sort_keys=True, width=100) if found else ""
