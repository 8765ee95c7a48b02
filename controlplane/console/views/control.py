"""Operations, audit, search."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from controlplane.audit.models import AuditEntry
from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import polling
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.console.selectors import control as selectors
from controlplane.operations.models import Operation


@login_required
def operations(request: ConsoleRequest) -> HttpResponse:
    """Running, failed and done work, newest first."""
    rows = selectors.operations_for(request.user)
    state = request.GET.get("state", "")
    if state in Operation.State.values:
        rows = rows.filter(state=state)
    page = page_of(request, rows)
    newest = max((row.updated_at for row in page), default=None)
    tag = polling.tag_of("operations", request.user.pk, request.GET.urlencode(), newest, len(page))
    if polling.is_current(request, tag):
        return polling.unchanged()
    context = {
        "page": page,
        "states": Operation.State.choices,
        "state": state,
        "tag": tag,
        "sources": [Source(_("Operations"), newest, expected_seconds=86400)] if newest else [],
        "refresh_seconds": 5,
    }
    return polling.page_or_fragment(
        request, page="console/operations.html", fragment="console/_operations.html",
        context=context,
    )  # fmt: skip


@login_required
def operation(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One operation with its steps; asks again until it has ended."""
    row = get_object_or_404(selectors.operations_for(request.user), pk=pk)
    tag = polling.tag_of("operation", row.pk, row.updated_at, row.state)
    if polling.is_current(request, tag) and not row.has_ended:
        return polling.unchanged()
    context = {
        "operation": row,
        "steps": row.steps.order_by("position"),
        "tag": tag,
        "sources": [Source(_("Operation"), row.updated_at, expected_seconds=86400)],
    }
    return polling.page_or_fragment(
        request, page="console/operation.html", fragment="console/_operation.html",
        context=context, final=row.has_ended,
    )  # fmt: skip


@login_required
def audit(request: ConsoleRequest) -> HttpResponse:
    """Who did what, newest first."""
    permissions.require(request.user, "audit.view_auditentry")
    rows = selectors.audit_entries_for(request.user)
    wanted = {name: request.GET.get(name, "").strip() for name in ("q", "result")}
    if wanted["q"]:
        rows = rows.filter(action__icontains=wanted["q"]) | rows.filter(
            object_repr__icontains=wanted["q"]
        )
    if wanted["result"] in AuditEntry.Result.values:
        rows = rows.filter(result=wanted["result"])
    page = page_of(request, rows)
    context = {"page": page, "wanted": wanted, "results": AuditEntry.Result.choices}
    return render(request, "console/audit.html", context)


@login_required
def search(request: ConsoleRequest) -> HttpResponse:
    """Nodes, pools, plans and routers by name."""
    text = request.GET.get("q", "").strip()[:100]
    hits = selectors.search(request.user, text) if text else []
    return render(request, "console/search.html", {"text": text, "hits": hits})
