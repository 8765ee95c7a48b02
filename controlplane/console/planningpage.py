"""A plan as its page shows it: options with bars, figures, and reasons in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import translation
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from controlplane.console import svg, words
from controlplane.planning.forms import defaults_of
from controlplane.planning.models import Advice, ScenarioRun
from controlplane.planning.telling import sentences
from routing.planner.problem import Target

ROLES = ("prefill", "decode", "both")
KINDS: Mapping[str, object] = {
    "now": gettext_lazy("roles of today"),
    "both": gettext_lazy("both phases everywhere"),
    "split": gettext_lazy("split"),
}


@dataclass(frozen=True, slots=True)
class GroupBar:
    """Roles of one group of accelerators."""

    group: str
    drawing: SafeString
    told: str
    """Counts by role in words."""


@dataclass(frozen=True, slots=True)
class OptionRow:
    """One way to serve a pool. Figures are simulated; None is no data."""

    kind: object
    is_advice: bool
    bars: Sequence[GroupBar]
    goodput: float | None
    ttft_p90: float | None
    tpot_p90: float | None
    utilisation: float | None
    hit_rate: float | None
    accelerators: int
    moves: int
    cost_per_million: str | None
    kilowatts: float | None
    """Power limits added up."""
    reasons: Sequence[str]
    goodput_low: float | None
    goodput_high: float | None
    """Simulated goodput with the model's error."""


@dataclass(frozen=True, slots=True)
class AdviceView:
    """Advice with everything that its panel needs."""

    row: Advice
    content: Mapping[str, Any]
    verdict: object
    reasons: Sequence[str]
    options: Sequence[OptionRow]
    refused: Sequence[tuple[str, str]]
    """Groups that the model cannot use, with the reason."""
    legend: Sequence[str]
    default_targets: str
    """Targets that are the planner's and not the pool's, in words; empty if none is."""
    can_plan: bool
    """True if following it moves an accelerator of a pool of this installation."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of a pool in two runs."""

    name: object
    first: float | None
    second: float | None
    digits: int

    @property
    def change(self) -> float | None:
        """Second over first, minus 1; None where one is missing."""
        if self.first is None or self.second is None or not self.first:
            return None
        return self.second / self.first - 1


def view_of(row: Advice) -> AdviceView:
    """Advice as a panel shows it."""
    content, language = row.content, translation.get_language()
    error = float(row.error_band["throughput"])
    chosen = content.get("chosen")
    options = ([chosen] if chosen else []) + list(content["alternatives"])
    rows = [_option(one, error, is_advice=one is chosen, language=language) for one in options]
    return AdviceView(
        row=row,
        content=content,
        verdict=Advice.Verdict(row.verdict).label,
        reasons=sentences(content["reasons"], language),
        options=rows,
        refused=[
            (one["group"], sentences([one["reason"]], language)[0]) for one in content["refused"]
        ],
        legend=[role for role in ROLES if _has_role(options, role)],
        default_targets=_default_targets(row),
        can_plan=row.pool_id is not None
        and bool(chosen and chosen["moves"])
        and row.verdict in {Advice.Verdict.BOTH, Advice.Verdict.SPLIT},
    )


def _default_targets(row: Advice) -> str:
    if row.pool is None:
        return ""
    used, usual = row.content, Target()
    same = {
        "ttft": used["ttft_target_seconds"] == usual.ttft_seconds,
        "tpot": used["tpot_target_seconds"] == usual.tpot_seconds,
    }
    return ", ".join(name.upper() for name in defaults_of(row.pool) if same[name])


def compared(first: ScenarioRun, second: ScenarioRun) -> list[tuple[str, list[Compared], str, str]]:
    """Pools that both runs have, with their figures and verdicts."""
    theirs = {pool["pool"]: pool for pool in (second.result or {}).get("pools", ())}
    found = []
    for ours in (first.result or {}).get("pools", ()):
        other = theirs.get(ours["pool"])
        if other is not None:
            verdicts = [str(Advice.Verdict(one["verdict"]).label) for one in (ours, other)]
            found.append((ours["pool"], _figures(ours, other), *verdicts))
    return found


def _figures(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Compared]:
    def both(name: object, digits: int, *path: str) -> Compared:
        return Compared(name, _number(ours, path), _number(theirs, path), digits)

    outcome = ("chosen", "outcome")
    return [
        both(_("Offered, requests/s"), 1, "offered_rps"),
        both(_("Goodput, requests/s"), 1, *outcome, "goodput_rps"),
        both(_("Output, tokens/s"), 0, *outcome, "output_tokens_per_s"),
        both(_("TTFT p90, s"), 3, *outcome, "ttft", "p90"),
        both(_("TPOT p90, s"), 4, *outcome, "tpot", "p90"),
        both(_("Utilisation"), 2, *outcome, "utilisation"),
        both(_("Cost per 1M output tokens"), 4, "chosen", "cost_per_million_output"),
        both(_("Power limit, W"), 0, "chosen", "watts_at_most"),
        both(_("Accelerators"), 0, "chosen", "accelerators"),
    ]


def _number(values: Mapping[str, Any], path: Iterable[str]) -> float | None:
    found: Any = values
    for name in path:
        found = found.get(name) if found is not None else None
    return None if found is None else float(found)


def _option(
    option: Mapping[str, Any], error: float, *, is_advice: bool, language: str | None
) -> OptionRow:
    def figure(*path: str) -> float | None:
        return _number(option, ("outcome", *path))

    goodput = figure("goodput_rps")
    return OptionRow(
        kind=KINDS[option["kind"]],
        is_advice=is_advice,
        bars=[_bar(share) for share in option["placement"]],
        goodput=goodput,
        ttft_p90=figure("ttft", "p90"),
        tpot_p90=figure("tpot", "p90"),
        utilisation=figure("utilisation"),
        hit_rate=figure("prefix_hit_rate"),
        accelerators=option["accelerators"],
        moves=option["moves"],
        cost_per_million=option["cost_per_million_output"],
        kilowatts=None if (watts := option["watts_at_most"]) is None else watts / 1000,
        reasons=sentences(option["reasons"], language),
        goodput_low=None if goodput is None else goodput * (1 - error),
        goodput_high=None if goodput is None else goodput * (1 + error),
    )


def _bar(share: Mapping[str, Any]) -> GroupBar:
    counts = {role: share[role] * share["width"] for role in ROLES}
    present = [(role, count) for role, count in counts.items() if count]
    told = ", ".join(f"{count} {words.role(role)[1]}" for role, count in present)
    segments = [svg.Segment(words.role(role)[0], count) for role, count in present]
    total = float(sum(counts.values()))
    return GroupBar(share["group"], svg.bar(segments, total=total, label="", height=10), told)


def _has_role(options: Sequence[Mapping[str, Any]], role: str) -> bool:
    return any(share[role] for option in options for share in option["placement"])
