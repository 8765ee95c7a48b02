"""Pages of serving: pools, roles, change plans, routers."""

from datetime import UTC, datetime
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import attention, planpage, polling, routerpage, strips, svg, words
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.console.selectors import changes as selectors
from controlplane.console.selectors import fleet, overview
from controlplane.console.selectors import pools as pool_selectors
from controlplane.console.selectors.pairs import pair_table
from controlplane.serving import documents
from controlplane.serving.models import ChangePlan, Pool


@login_required
def pools(request: ConsoleRequest) -> HttpResponse:
    """Pools with objectives, endpoints and routers in sync."""
    permissions.require(request.user, "serving.view_pool")
    rows = pool_selectors.pool_rows(pool_selectors.pools_for(request.user))
    heard = [row.service.until for row in rows if row.service.until]
    context = {
        "pools": rows,
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "sources": [Source(_("Usage"), max(heard, default=None))],
        "refresh_seconds": 10,
    }
    return polling.page_or_fragment(
        request, page="serving/pools.html", fragment="serving/_pools.html", context=context
    )


@login_required
def pool(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One pool: endpoints, pairs, conditions, documents, policy."""
    permissions.require(request.user, "serving.view_pool")
    row = get_object_or_404(pool_selectors.pools_for(request.user), pk=pk)
    endpoints = pool_selectors.endpoints_of(row)
    context = {
        "row": pool_selectors.pool_rows([row])[0],
        "pool": row,
        "endpoints": endpoints,
        "pairs": pair_table(row, endpoints),
        "documents": pool_selectors.documents_of(row),
        "policies": Pool.Policy.choices,
        "admission": documents.admission_of(row.policy, row.admission),
        "may_change": permissions.allows(request.user, "serving.change_pool", row),
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "plans": selectors.plans_for(request.user).filter(pool=row)[:5],
        "sources": [
            Source(_("Reconcile loop"), row.reconciled_at, expected_seconds=30),
            Source(_("Engines"), max((e.observed_at for e in endpoints if e.observed_at),
                                     default=None)),
        ],
        "refresh_seconds": 10,
    }  # fmt: skip
    return polling.page_or_fragment(
        request, page="serving/pool.html", fragment="serving/_pool.html", context=context
    )


@login_required
def roles(request: ConsoleRequest) -> HttpResponse:
    """The board: what each accelerator is now and will be."""
    permissions.require(request.user, "serving.view_pool")
    wanted = {name: request.GET.get(name, "")[:100] for name in ("vendor", "site")}
    groups = selectors.board(request.user, **wanted)
    rows = [row for _site, _vendor, found in groups for row in found]
    now: dict[str, int] = {}
    for row in rows:
        for role, count in row.roles.items():
            now[role] = now.get(role, 0) + count
    context = {
        "groups": [
            (site, vendor, [(row, _squares(row, planned=False), _squares(row, planned=True))
                            for row in found])
            for site, vendor, found in groups
        ],
        "wanted": wanted,
        "filters": fleet.node_filters(request.user),
        "now": now,
        "bar": strips.role_bar(now, label=_("now"), height=14) if now else "",
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "sources": [Source(_("Inventory"), fleet.newest_observation(request.user))],
    }  # fmt: skip
    return render(request, "serving/roles.html", context)


def _squares(row: selectors.BoardRow, *, planned: bool) -> str:
    patterns = row.planned if planned else row.now
    counts = row.planned_roles if planned else row.roles
    told = ", ".join(f"{count} {words.role(role)[1]}" for role, count in counts.items())
    return svg.squares(patterns, label=told)


@login_required
def changes(request: ConsoleRequest) -> HttpResponse:
    """Plans, what needs somebody first."""
    permissions.require(request.user, "serving.view_changeplan")
    rows = selectors.plans_for(request.user)
    state = request.GET.get("state", "")
    if state in ChangePlan.State.values:
        rows = rows.filter(state=state)
    context = {
        "page": page_of(request, rows),
        "state": state,
        "states": ChangePlan.State.choices,
        "may_plan": permissions.allows(request.user, "serving.add_changeplan"),
        "sources": [Source(_("Plans"), selectors.last_change(request.user), 86400)],
    }
    return render(request, "serving/changes.html", context)


@login_required
def change(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One plan at one address, from its draft to its end; asks again while something may happen."""
    permissions.require(request.user, "serving.view_changeplan")
    plan = get_object_or_404(selectors.plans_for(request.user), pk=pk)
    version = selectors.plan_version(plan)
    tag = polling.tag_of("plan", request.user.pk, *version, datetime.now(UTC).minute)
    if polling.is_current(request, tag) and plan.is_open:
        return polling.unchanged()
    context = {**planpage.context_of(plan, request.user), "tag": tag}
    context["refresh_seconds"] = 2 if plan.is_open else None
    return polling.page_or_fragment(
        request, page="serving/change.html", fragment="serving/_change.html", context=context,
        final=not plan.is_open,
    )  # fmt: skip


@login_required
def routers(request: ConsoleRequest) -> HttpResponse:
    """Routers: which document since when, and when they were heard."""
    permissions.require(request.user, "serving.view_router")
    rows = overview.routers_for(request.user)
    newest = pool_selectors.newest_versions(request.user)
    context = {
        "routers": [
            (row, attention.is_silent(row), routerpage.documents_of(row, newest)) for row in rows
        ],
        "pushes": pool_selectors.newest_pushes(request.user),
        "sources": [Source(_("Routers"), max((r.heard_at for r in rows if r.heard_at),
                                             default=None))],
        "refresh_seconds": 5,
    }  # fmt: skip
    return polling.page_or_fragment(
        request, page="serving/routers.html", fragment="serving/_routers.html", context=context
    )
