"""Cost of the month: where every hour went, by node, and what a million tokens cost."""

from datetime import UTC, datetime

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import format as fmt
from controlplane.console import svg, words
from controlplane.console.freshness import Source
from controlplane.console.selectors import money as selectors


@login_required
def cost(request: ConsoleRequest) -> HttpResponse:
    """`?month=2026-11` chooses the month; the sum under each table equals the figure above it."""
    user = request.user
    permissions.require(user, "finance.view_ledger")
    start = _wanted(request.GET.get("month", "")) or selectors.month_start()
    month = selectors.month_of(user, start=start)
    classes = selectors.classes_of(user, month) if month else []
    context = {
        "start": start,
        "months": selectors.months_with_ledger(user),
        "month": month,
        "is_open": start == selectors.month_start(),
        "classes": classes,
        "class_total": sum(row.amount for row in classes),
        "class_hours": sum(row.accelerator_hours for row in classes),
        "bar": _bar(classes, month.currency) if month else "",
        "units": selectors.unit_costs_of(user, month) if month else [],
        "comparison": selectors.newest_comparison(user),
        "sources": [Source(_("Ledger"), month.until, expected_seconds=3600)] if month else [],
    }
    return render(request, "finance/cost.html", context)


def _wanted(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        return None


def _bar(rows: list[selectors.ClassRow], currency: str) -> str:
    told = ", ".join(
        f"{words.role(row.pattern)[1]} {fmt.money(row.amount, currency)}" for row in rows
    )
    return svg.bar(
        [svg.Segment(words.role(row.pattern)[0], float(row.amount)) for row in rows],
        total=float(sum(row.amount for row in rows)),
        label=told,
        height=22,
    )
