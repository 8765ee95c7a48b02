"""A live race as its page shows it: what state it is in, the finding, figures, bars and charts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from controlplane.console import format as fmt
from controlplane.console.racecharts import Bar, Line, RaceChart, lane
from controlplane.operations.models import Operation
from controlplane.planning.board import Snapshot
from controlplane.planning.models import LiveRace
from routing.simulator.live.duel import (
    FLEET,
    KEPT_READINGS,
    READ_EVERY_SECONDS,
    TPOT_SECONDS,
    TTFT_SECONDS,
    Side,
    View,
)
from routing.simulator.live.meter import WINDOW_SECONDS, Load, Reading
from routing.simulator.race.fleets import FLEETS
from routing.simulator.report.prices import listed

CLASSES = {"nvidia-h100-nvl": "H100-NVL", "amd-mi325x": "MI325X", "intel-gaudi3": "Gaudi 3"}
SILENT_SECONDS = 5.0
"""Ten ticks of the worker; longer than it is away while it is well."""
SPAN_SECONDS = READ_EVERY_SECONDS * (KEPT_READINGS - 1)
_BAR_STEPS = (25, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000, 5000)


UNKNOWN = Reading(
    at=0.0,
    ttft_p50=None,
    ttft_p90=None,
    output_tokens_per_s=None,
    goodput_rps=None,
    prefix_hit_rate=None,
    cost_per_million_output=None,
    running=0,
    waiting=0,
)
"""Before the first reading."""


@dataclass(frozen=True, slots=True)
class Half:
    """One side of the page."""

    key: str
    name: str
    about: str
    now: Reading
    side: Side
    lane: SafeString


@dataclass(frozen=True, slots=True)
class RacePage:
    """All that moves."""

    halves: Sequence[Half]
    charts: Sequence[RaceChart]
    finding: str
    bar_top: int
    view: View


def state_of(race: LiveRace | None, snapshot: Snapshot | None, now: datetime) -> str:
    """none, pending, running, silent (no sign of its worker), or why it ended."""
    if race is None:
        return "none"
    if not race.is_open:
        return race.end
    if race.operation.state == Operation.State.PENDING:
        return "pending"
    seen = snapshot.written_at if snapshot is not None else race.begun_at or race.updated_at
    return "silent" if (now - seen).total_seconds() > SILENT_SECONDS else "running"


def fleet_in_words() -> str:
    """The pool of either side: 4 H100-NVL, 8 MI325X, 8 Gaudi 3."""
    members = FLEETS[FLEET].members
    return ", ".join(f"{member.count} {CLASSES[member.accelerator]}" for member in members)


def engines() -> int:
    """Of one side."""
    return sum(member.count for member in FLEETS[FLEET].members)


def price_confidence() -> str:
    """The weakest word behind the prices of the fleet."""
    words = {listed(member.accelerator).price_confidence for member in FLEETS[FLEET].members}
    return "estimate" if "estimate" in words else "secondary"


def page_of(snapshot: Snapshot) -> RacePage:
    """Everything that moves, from one snapshot."""
    view = snapshot.view
    busiest = max(load.running + load.waiting for side in view.sides for load in side.loads)
    top = next((step for step in _BAR_STEPS if busiest <= step), busiest)
    names = (
        (_("Kubernetes Service"), _("random endpoint per request")),
        (_("Consort"), _("price in seconds, speed learned per endpoint and phase")),
    )
    halves = [
        Half(
            key=key,
            name=name,
            about=about,
            now=side.readings[-1] if side.readings else UNKNOWN,
            side=side,
            lane=_lane(key, name, side.loads, top),
        )
        for key, (name, about), side in zip(("s", "c"), names, view.sides, strict=True)
    ]
    return RacePage(
        halves=halves,
        charts=list(_charts(view)),
        finding=_finding(view),
        bar_top=top,
        view=view,
    )


def rows_of(view: View) -> Iterator[list[object]]:
    """The drawn numbers as rows of a table, head first; empty is "no data"."""
    fields = ("ttft_p50", "ttft_p90", "output_tokens_per_s", "goodput_rps", "prefix_hit_rate",
              "cost_per_million_output", "running", "waiting")  # fmt: skip
    yield ["virtual_seconds", "policy", *fields]
    for side in view.sides:
        for reading in side.readings:
            yield [reading.at, side.policy, *(getattr(reading, field) for field in fields)]


def moment(seconds: float) -> str:
    """Virtual time as minutes and seconds: 3:05; empty before the start."""
    return "" if seconds < 0 else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _lane(key: str, name: str, loads: Sequence[Load], top: int) -> SafeString:
    groups = [
        (CLASSES.get(kind, kind), [Bar(load.running, load.waiting) for load in same])
        for kind, same in groupby(loads, key=lambda load: load.speed_class)
    ]
    told = " ".join(
        _("%(class)s: %(running)s running, %(waiting)s waiting.")
        % {
            "class": kind,
            "running": fmt.number(sum(bar.running for bar in bars)),
            "waiting": fmt.number(sum(bar.waiting for bar in bars)),
        }
        for kind, bars in groups
    )
    title = _("Requests per engine: %(name)s") % {"name": name}
    return lane(f"lane-{key}", groups, top=top, title=title, told=told)


def _finding(view: View) -> str:
    """One sentence, once the rate held for a window on both sides; empty while nothing can be
    said."""
    theirs, ours = (side.readings[-1] if side.readings else None for side in view.sides)
    if theirs is None or ours is None:
        return ""
    if theirs.at - view.rate_since < WINDOW_SECONDS:
        return _rate_is_new() if view.rate_since else ""
    if theirs.ttft_p90 is None or ours.ttft_p90 is None:
        return ""
    return _(
        "At %(rate)s requests/s the same %(engines)d accelerators answer %(good_ours)s requests/s"
        " within the targets instead of %(good_theirs)s, and nine of ten first tokens come within"
        " %(ours)s s instead of %(theirs)s s."
    ) % {
        "rate": fmt.number(view.rate_qps),
        "engines": engines(),
        "good_ours": fmt.number(ours.goodput_rps, 1),
        "good_theirs": fmt.number(theirs.goodput_rps, 1),
        "ours": fmt.number(ours.ttft_p90, 2 if ours.ttft_p90 < 10 else 0),
        "theirs": fmt.number(theirs.ttft_p90, 2 if theirs.ttft_p90 < 10 else 0),
    }


def _rate_is_new() -> str:
    return _(
        "The rate has just changed. The two sides are compared once it has held for %(n)d simulated"
        " seconds, since figures are of so many."
    ) % {"n": int(WINDOW_SECONDS)}


def _charts(view: View) -> Iterator[RaceChart]:
    answered = _("answered in the last %(n)d s") % {"n": int(WINDOW_SECONDS)}
    firsts = _("first tokens of the last %(n)d s") % {"n": int(WINDOW_SECONDS)}
    tokens, good = lambda one: one.output_tokens_per_s, lambda one: one.goodput_rps
    yield _chart(view, ("tp", _("Output tokens/s"), answered), tokens, fmt.number)
    yield _chart(view, ("gp", _("Goodput, requests/s"), good_in_words()), good, _few)
    for key, title, value in (
        ("t5", _("TTFT p50, logarithmic"), lambda one: one.ttft_p50),
        ("t9", _("TTFT p90, logarithmic"), lambda one: one.ttft_p90),
    ):
        yield replace(
            _chart(view, (key, title, firsts), value, lambda value: f"{value:g} s"),
            least=0.01,
            target=TTFT_SECONDS,
            target_label=_("target: %(seconds)s s") % {"seconds": fmt.number(TTFT_SECONDS)},
        )
    rate = _chart(
        view,
        ("hr", _("Prefix hit rate"), answered),
        lambda one: one.prefix_hit_rate,
        lambda value: f"{fmt.percent(value)} %",
    )
    yield replace(rate, most=1.0)
    top = _cost_top(view)
    cost = _chart(
        view,
        ("co", _("Cost per 1M output tokens"), answered),
        lambda one: _cost(one, top),
        lambda value: fmt.money(value, view.currency),
    )
    yield replace(cost, most=top)


def _few(value: float) -> str:
    return fmt.number(value, 0 if value >= 10 else 1)


def good_in_words() -> str:
    """What counts as goodput."""
    return _("answered with TTFT ≤ %(ttft)s s and TPOT ≤ %(tpot)s ms") % {
        "ttft": fmt.number(TTFT_SECONDS),
        "tpot": fmt.number(1000 * TPOT_SECONDS),
    }


def _cost(reading: Reading, top: float | None = None) -> float | None:
    """Of a full window, up to `top`: with its first answers a pool is a hundred times as dear."""
    cost = reading.cost_per_million_output
    if cost is None or reading.at < WINDOW_SECONDS or (top is not None and cost > top):
        return None
    return float(cost)


def _cost_top(view: View) -> float | None:
    """Room for the usual; a cold start would flatten all that follows."""
    latest = [_cost(side.readings[-1]) for side in view.sides if side.readings]
    known = [cost for cost in latest if cost is not None]
    return 2.5 * max(known) if known else None


def _chart(
    view: View,
    words: tuple[str, str, str],
    value: Callable[[Reading], float | None],
    label: Callable[[float], str],
) -> RaceChart:
    """`words` are key, title and note; the scale is linear from 0."""
    key, title, note = words
    sides = zip((_("Service"), _("Consort")), (False, True), view.sides, strict=True)
    return RaceChart(
        key=key,
        title=title,
        note=note,
        moments=[reading.at for reading in view.sides[0].readings],
        lines=[
            Line(name, [value(reading) for reading in side.readings], is_ours=is_ours)
            for name, is_ours, side in sides
        ],
        label=label,
        when=moment,
        span=SPAN_SECONDS,
    )


def said(state: str, view: View | None) -> str:
    """What a screen reader is told; it changes with the state and the rate, not with each tick."""
    if state == "running" and view is not None:
        rate = int(view.rate_qps)
        return ngettext(
            "The race runs at %(n)d request/s.", "The race runs at %(n)d requests/s.", rate
        ) % {"n": rate}
    return {
        "pending": _("The race waits for a worker."),
        "silent": _("The worker of the race has not been heard for some seconds."),
        "stopped": _("The race was stopped."),
    }.get(state, _("The race has ended.") if state != "none" else "")
