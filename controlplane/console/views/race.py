"""The live race: two simulated pools under the same traffic, moved by a worker."""

import csv

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import polling, racepage
from controlplane.console.freshness import Source
from controlplane.planning import board, selectors
from controlplane.planning.models import LEAST_RATE, MOST_RATE, LiveRace
from routing.simulator.live.duel import FLEET
from routing.simulator.race.fleets import FLEETS

FIRST_RATE = 20
"""More than the Service can serve with these cards, and less than Consort can."""
REFRESH_SECONDS = 1


@login_required
def race(request: ConsoleRequest) -> HttpResponse:
    """One's own race; its moving part asks again each second while it is open."""
    permissions.require(request.user, "planning.view_scenario")
    row = selectors.latest_race(request.user)
    now = timezone.now()
    snapshot = None if row is None else board.snapshot_of(row.pk)
    if row is not None and row.is_open:
        board.watch(row.pk)
    state = racepage.state_of(row, snapshot, now)
    moved = None if snapshot is None else snapshot.written_at
    silent = now.replace(microsecond=0) if state == "silent" else None
    tag = polling.tag_of("race", None if row is None else row.pk, state, moved, silent)
    if polling.is_current(request, tag):
        return polling.unchanged()
    is_open = row is not None and row.is_open
    context = {
        "race": row,
        "state": state,
        "is_open": is_open,
        "has_changed": request.GET.get("shown", state) != state,
        "shown": None if snapshot is None else racepage.page_of(snapshot),
        "snapshot": snapshot,
        "said": racepage.said(state, None if snapshot is None else snapshot.view),
        "tag": tag,
        "model": FLEETS[FLEET].model,
        "fleet": racepage.fleet_in_words(),
        "good": racepage.good_in_words(),
        "price_confidence": racepage.price_confidence(),
        "may_start": permissions.allows(request.user, "planning.run_scenario"),
        "starters": ", ".join(permissions.roles_with("planning.run_scenario")),
        "rate": _rate(row),
        "least": LEAST_RATE,
        "most": MOST_RATE,
        "sources": [Source(_("Simulation"), moved)] if row is not None else [],
        "refresh_seconds": REFRESH_SECONDS if is_open else None,
    }
    return polling.page_or_fragment(
        request, page="planning/race.html", fragment="planning/_race.html", context=context,
        final=not is_open,
    )  # fmt: skip


@login_required
def figures(request: ConsoleRequest) -> HttpResponse:
    """The charts' numbers as CSV; 404 while there are none."""
    permissions.require(request.user, "planning.view_scenario")
    row = selectors.latest_race(request.user)
    snapshot = None if row is None else board.snapshot_of(row.pk)
    if snapshot is None:
        raise Http404
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="race-simulated.csv"'
    answer["Cache-Control"] = "no-store"
    csv.writer(answer).writerows(racepage.rows_of(snapshot.view))
    return answer


def _rate(row: LiveRace | None) -> int:
    return FIRST_RATE if row is None else round(row.rate_qps)
