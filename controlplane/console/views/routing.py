"""Pages of routing: live decisions, why one fell as it did, replay, the route tester."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from controlplane.common import permissions
from controlplane.common.errors import DomainError
from controlplane.common.http import ConsoleRequest
from controlplane.console import decisionpage, polling, prefixmap
from controlplane.console.freshness import Source
from controlplane.console.paging import page_of
from controlplane.decisions import selectors, services
from controlplane.decisions.forms import ReplayForm, RouteForm
from controlplane.decisions.models import Decision
from controlplane.tenancy.models import User
from routing.explain.reading import readable

SHADOW_HOURS = (1, 24, 168)
FILTERS = ("pool", "tenant", "outcome", "policy", "destination")


@login_required
def decisions(request: ConsoleRequest) -> HttpResponse:
    """Sampled decisions, latest first; polls."""
    permissions.require(request.user, "routing.view_decision")
    rows = selectors.decisions_for_viewer(request.user).defer("record", "held")
    wanted = {name: request.GET.get(name, "")[:200] for name in FILTERS}
    page = page_of(request, rows.filter(**{name: v for name, v in wanted.items() if v}))
    newest = max((row.updated_at for row in page), default=None)
    readings = list(selectors.readings_for_viewer(request.user))
    failing = [reading.router for reading in readings if reading.last_error]
    tag = polling.tag_of(
        "decisions", request.user.pk, request.GET.urlencode(), newest, len(page), failing
    )
    if polling.is_current(request, tag):
        return polling.unchanged()
    context = {
        "page": page,
        "tag": tag,
        "wanted": wanted,
        "is_filtered": any(wanted.values()),
        "outcomes": Decision.Outcome.choices,
        "is_fleet": request.user.tenant_id is None,
        "may_test": permissions.allows(request.user, "routing.test_route"),
        "rates": _rates(readings),
        "left_out": sum(reading.left_out + reading.missed for reading in readings),
        "sources": _sources(readings, page),
        "refresh_seconds": 5,
    }
    if not request.headers.get("HX-Request"):
        context |= _panels(request, rows, wanted["pool"])
    return polling.page_or_fragment(
        request, page="routing/decisions.html", fragment="routing/_decisions.html", context=context
    )


def _panels(request: ConsoleRequest, rows: Any, pool: str) -> dict[str, Any]:
    """What the page shows beside the list; it does not move by itself."""
    hours = request.GET.get("hours", "24")
    window = int(hours) if hours.isdigit() and int(hours) in SHADOW_HOURS else 24
    found = selectors.prefix_map(request.user, pool=pool)
    return {
        "pools": list(rows.order_by("pool").values_list("pool", flat=True).distinct()[:50]),
        "tenants": list(rows.order_by("tenant").values_list("tenant", flat=True).distinct()[:50]),
        "shadow": selectors.shadow_figures(request.user, pool=pool, hours=window),
        "hours": window,
        "windows": SHADOW_HOURS,
        "prefixes": found,
        "prefix_drawing": prefixmap.drawing(found),
        "prefix_rows": prefixmap.rows(found),
    }


def _rates(readings: list[Any]) -> list[tuple[str, int]]:
    """Pool and how many ordinary requests stand behind one record."""
    rates = {pool: rate for reading in readings for pool, rate in reading.sample_rates.items()}
    return [(pool, round(1 / rate)) for pool, rate in sorted(rates.items()) if rate > 0]


def _sources(readings: list[Any], page: Any) -> list[Source]:
    if readings:
        return [Source(reading.router, reading.read_at) for reading in readings]
    return [Source(_("Decisions"), max((row.at for row in page), default=None))]


@login_required
def decision(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One decision: the reason, every candidate with its terms, what was filtered, a replay."""
    permissions.require(request.user, "routing.view_decision")
    row = get_object_or_404(selectors.decisions_for_viewer(request.user), pk=pk)
    record = selectors.record_for_viewer(row, request.user)
    is_fleet = request.user.tenant_id is None
    told = services.explain_row(row, language=translation.get_language() or "en")
    context = {
        "row": row,
        "told": told if is_fleet or row.outcome == Decision.Outcome.REFUSED else None,
        "is_fleet": is_fleet,
        "is_open": row.outcome == Decision.Outcome.OPEN,
        "sources": [Source(row.router, row.updated_at, expected_seconds=86400)],
        **_table(record),
    }
    if is_fleet:
        context |= _replay(request, record)
    return render(request, "routing/decision.html", context)


def _table(raw: dict[str, Any]) -> dict[str, Any]:
    record = readable(raw)
    candidates = decisionpage.candidates_of(record)
    return {
        "candidates": candidates,
        "legend": decisionpage.legend_of(candidates),
        "filtered": decisionpage.filtered_of(record),
        "notes": decisionpage.notes_of(record),
    }


def _replay(request: ConsoleRequest, record: dict[str, Any]) -> dict[str, Any]:
    """The form of a replay, and its result when one was asked for."""
    before = readable(record)
    listed = [row["endpoint"] for row in before.get("candidates") or ()]
    asked = request.GET if "replay" in request.GET else None
    form = ReplayForm(asked, endpoints=sorted(listed))
    context: dict[str, Any] = {"replay_form": form, "may_replay": bool(record.get("inputs"))}
    if asked is None or not form.is_valid():
        return context
    values = form.cleaned_data
    try:
        again = services.replay_decision(
            record=record,
            policy=values["policy"] or None,
            force=values["force"],
            remove=[values["remove"]] if values["remove"] else [],
            document_version=values["document_version"],
            language=translation.get_language() or "en",
        )
    except DomainError as error:
        form.add_error(None, str(error))
        return context
    return context | {
        "replayed": again,
        "differences": decisionpage.differences(before, again.record),
        "replay_notes": decisionpage.notes_of(again.record),
    }


@sensitive_post_parameters("prompt", "key")
@login_required
def test(request: ConsoleRequest) -> HttpResponse:
    """The route tester: what would happen to a request; with a key it is really sent."""
    permissions.require(request.user, "routing.test_route")
    like = request.GET.get("like", "")[:250]
    initial = {"prompt_tokens": None if like else 4000, "max_tokens": 64, "like": like}
    form = RouteForm(request.POST or None, viewer=request.user, initial=initial)
    context: dict[str, Any] = {"form": form}
    if request.method == "POST" and form.is_valid():
        try:
            context |= _asked(form, request.user)
        except DomainError as error:
            form.add_error(None, error.told)
    return render(request, "routing/test.html", context, status=422 if form.errors else 200)


test.__test__ = False  # type: ignore[attr-defined]  # a view, whatever its name


def _asked(form: RouteForm, actor: User) -> dict[str, Any]:
    language = translation.get_language() or "en"
    if not form.is_sent:
        told = services.explain_route(question=form.question(), actor=actor, language=language)
        return {"explained": told, **_table(told.record)}
    tested = services.send_test(
        question=form.question(), key=form.cleaned_data["key"], actor=actor, language=language
    )
    if tested.explained is None:
        return {"tested": tested}
    return {"tested": tested, "explained": tested.explained, **_table(tested.explained.record)}
