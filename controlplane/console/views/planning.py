"""Pages of planning: scenarios, runs with progress, advice with its reasons, compare."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import planningpage, polling
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.planning import selectors
from controlplane.planning.models import Advice
from routing.planner.accuracy import MODEL_ERROR

FEW = 20
REFRESH_SECONDS = 2


@login_required
def planning(request: ConsoleRequest) -> HttpResponse:
    """Scenarios, their latest runs, and what standing advice found."""
    permissions.require(request.user, "planning.view_scenario")
    standing = list(selectors.advice_for_viewer(request.user).filter(is_standing=True)[:FEW])
    newest = max((row.created_at for row in standing), default=None)
    context = {
        "page": page_of(request, selectors.scenarios_for_viewer(request.user)),
        "standing": standing,
        "may_run": permissions.allows(request.user, "planning.run_scenario"),
        "sources": [Source(_("Standing advice"), newest, 1800)] if newest else [],
    }
    return render(request, "planning/planning.html", context)


@login_required
def scenario(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One scenario: what it asks, and its runs."""
    permissions.require(request.user, "planning.view_scenario")
    row = get_object_or_404(selectors.scenarios_for_viewer(request.user), pk=pk)
    runs = selectors.runs_for_viewer(request.user).filter(scenario=row)
    context = {
        "scenario": row,
        "problem": row.problem,
        "runs": runs[:FEW],
        "may_run": permissions.allows(request.user, "planning.run_scenario"),
    }
    return render(request, "planning/scenario.html", context)


@login_required
def run(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One run: progress while it runs, then advice for each pool; asks again until it ends."""
    permissions.require(request.user, "planning.view_scenario")
    row = get_object_or_404(selectors.runs_for_viewer(request.user), pk=pk)
    rows = list(selectors.advice_for_viewer(request.user).filter(run=row).order_by("name"))
    tag = polling.tag_of("run", row.pk, row.operation.updated_at, [one.updated_at for one in rows])
    if polling.is_current(request, tag) and not row.has_ended:
        return polling.unchanged()
    finished = row.finished_at or row.operation.updated_at
    context = {
        "run": row,
        "operation": row.operation,
        "advice": [planningpage.view_of(one) for one in rows],
        "error_band": row.error_band,
        "currency": (row.result or {}).get("currency"),
        "others": selectors.runs_for_viewer(request.user)
        .filter(scenario=row.scenario, result__isnull=False)
        .exclude(pk=row.pk)[:FEW],
        "may_run": permissions.allows(request.user, "planning.run_scenario"),
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "tag": tag,
        "sources": [Source(_("Run"), finished, expected_seconds=30 * 86_400)],
        "refresh_seconds": None if row.has_ended else REFRESH_SECONDS,
    }
    return polling.page_or_fragment(
        request, page="planning/run.html", fragment="planning/_run.html", context=context,
        final=row.has_ended,
    )  # fmt: skip


@login_required
def advice(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One standing advice with its evidence."""
    permissions.require(request.user, "planning.view_scenario")
    row = get_object_or_404(selectors.advice_for_viewer(request.user), pk=pk)
    context = {
        "advice": [planningpage.view_of(row)],
        "row": row,
        "error_band": row.error_band,
        "currency": None,
        "may_plan": permissions.allows(request.user, "serving.add_changeplan")
        and permissions.allows(request.user, "planning.run_scenario"),
        "sources": [Source(_("Load"), row.measured_to or row.created_at, 1800)],
    }
    return render(request, "planning/advice.html", context)


@login_required
def compare(request: ConsoleRequest) -> HttpResponse:
    """Two runs side by side."""
    permissions.require(request.user, "planning.view_scenario")
    rows = selectors.runs_for_viewer(request.user).filter(result__isnull=False)
    first = get_object_or_404(rows, pk=_uuid(request.GET.get("first")))
    second = get_object_or_404(rows, pk=_uuid(request.GET.get("second")))
    context = {
        "first": first,
        "second": second,
        "pools": planningpage.compared(first, second),
        "error_band": first.error_band or {"throughput": MODEL_ERROR.throughput},
        "verdicts": Advice.Verdict,
    }
    return render(request, "planning/compare.html", context)


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text or "")
    except ValueError:
        return None
