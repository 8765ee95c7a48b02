"""A race as an HTML report: verdicts, everybody's goodput, each case, and splits of roles."""

from collections.abc import Callable, Mapping, Sequence

from routing.simulator.race.cases import CASES
from routing.simulator.race.judges import Verdict, name_of
from routing.simulator.race.known import published_points
from routing.simulator.race.outcome import RaceReport
from routing.simulator.race.standings import OURS, SERVICE, Entry, Row
from routing.simulator.report.comparison import FIGURES, chart_of
from routing.simulator.report.html import Cell, Page, Section, Table
from routing.simulator.report.messages import Language, say
from routing.simulator.report.svg import MOST_LINES, Chart, Line

_VALUES: Mapping[str, Callable[[Entry], float | None]] = {
    "throughput": lambda entry: entry.output_tokens_per_s,
    "goodput": lambda entry: entry.goodput_rps,
    "ttft-p50": lambda entry: entry.ttft_p50_s,
    "ttft-p90": lambda entry: entry.ttft_p90_s,
}


def race_page(report: RaceReport, *, language: Language = "en") -> Page:
    """The page of a whole race or of a part."""
    seeds = max((len(row.seeds) for row in report.rows), default=0)
    text = [say("race-about", language, seeds=seeds), say("simulated", language)]
    if report.is_quick:
        text.insert(0, say("race-quick", language))
    text += [say("published", language), say("drawn-few", language)]
    by_case: dict[str, list[Row]] = {}
    for row in report.rows:
        by_case.setdefault(f"{row.workload}@{row.fleet}", []).append(row)
    cases = [
        _case(place, name, rows, language) for place, (name, rows) in enumerate(by_case.items())
    ]
    sections = (_verdicts(report, language), _matrix(report, language), *cases)
    if report.splits:
        sections += (_splits(report, language),)
    return Page(
        title=say("race-title", language), text=tuple(text), sections=sections, language=language
    )


def _head(language: Language, *keys: str) -> tuple[str, ...]:
    return tuple(say(key, language) for key in keys)


def _verdicts(report: RaceReport, language: Language) -> Section:
    met = sum(verdict.is_met is True for verdict in report.verdicts)
    missed = sum(verdict.is_met is False for verdict in report.verdicts)
    counts = {"met": met, "missed": missed, "open": len(report.verdicts) - met - missed}
    title = say("demands", language)
    return Section(
        title=title,
        text=(say("demands-met", language, all=len(report.verdicts), **counts),),
        tables=(
            Table(
                caption=title,
                head=_head(language, "result", "demand", "row", "figure", "at-least", "against"),
                rows=tuple(
                    (
                        result_of(verdict, language),
                        say(verdict.demand, language),
                        verdict.row,
                        verdict.figure,
                        verdict.bar,
                        verdict.against,
                    )
                    for verdict in sorted(report.verdicts, key=_urgency)
                ),
            ),
        ),
    )


def result_of(verdict: Verdict, language: Language) -> str:
    """Met, missed, or why it was not judged."""
    if verdict.why_open is not None:
        return say(f"open-{verdict.why_open}", language)
    return say("met" if verdict.is_met else "missed", language)


def _urgency(verdict: Verdict) -> int:
    """What is missed comes first, then what was not judged."""
    return {False: 0, None: 1, True: 2}[verdict.is_met]


def _matrix(report: RaceReport, language: Language) -> Section:
    policies = list(dict.fromkeys(name for row in report.rows for name in row.policies))
    title = say("matrix", language)
    rows = tuple(
        (
            name_of(row),
            *(
                row.policies[policy].goodput_rps if policy in row.policies else None
                for policy in policies
            ),
        )
        for row in report.rows
    )
    table = Table(caption=title, head=(say("row", language), *policies), rows=rows)
    return Section(title=title, text=(say("matrix-about", language),), tables=(table,))


def _case(place: int, name: str, rows: Sequence[Row], language: Language) -> Section:
    rated = [row for row in rows if row.rate_qps is not None]
    charts: tuple[Chart, ...] = ()
    if len(rated) > 1:
        order, published = _order(rated), published_points(CASES[name], language=language)
        charts = tuple(
            chart_of(
                f"case{place}",
                figure,
                unit,
                tuple(_line(policy, rated, _VALUES[figure]) for policy in order),
                language=language,
                published=published,
            )
            for figure, unit in FIGURES
        )
    tables = tuple(_table(row, language) for row in rows)
    return Section(title=name, charts=charts, tables=tables)


def _order(rows: Sequence[Row]) -> list[str]:
    """Ours, the Service, then the best: a plot has room for few."""
    last = rows[-1].policies
    first = [name for name in (OURS, SERVICE) if name in last]
    rest = sorted(set(last) - set(first), key=lambda name: (-last[name].goodput_rps, name))
    return (first + rest)[:MOST_LINES]


def _line(policy: str, rows: Sequence[Row], value: Callable[[Entry], float | None]) -> Line:
    points = sorted(
        (row.rate_qps, value(row.policies[policy]))
        for row in rows
        if row.rate_qps is not None and policy in row.policies
    )
    return Line(name=policy, points=tuple(points))


def _table(row: Row, language: Language) -> Table:
    head = _head(
        language, "policy", "goodput", "good-share", "behind", "interval", "output-tokens-per-s",
        "ttft-p50", "ttft-p90", "tpot-p50", "hit-rate",
    )  # fmt: skip
    cost = say("cost-per-million", language, currency=row.currency or "")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            policy,
            entry.goodput_rps,
            entry.good_share,
            entry.goodput_behind,
            interval_text(entry),
            entry.output_tokens_per_s,
            entry.ttft_p50_s,
            entry.ttft_p90_s,
            entry.tpot_p50_s,
            entry.prefix_hit_rate,
            entry.cost_per_million_output_tokens,
            entry.failed,
        )
        for policy, entry in row.policies.items()
    )
    return Table(caption=name_of(row), head=(*head, cost, say("failed", language)), rows=rows)


def interval_text(entry: Entry) -> str | None:
    """The 95 % interval of what consort is ahead by; `None` for one seed."""
    low, high = entry.goodput_behind_low, entry.goodput_behind_high
    return None if low is None or high is None else f"{low:+.2f} … {high:+.2f}"


def _splits(report: RaceReport, language: Language) -> Section:
    rows = tuple(
        (
            f"{row.workload} {row.rate_qps:g} qps" if row.rate_qps else row.workload,
            row.split,
            row.goodput_rps,
            row.good_share,
            row.against_both,
            row.output_tokens_per_s,
            row.ttft_p50_s,
            row.ttft_p90_s,
            row.tpot_p50_s,
            row.pair_share,
            row.failed,
        )
        for row in report.splits
    )
    head = _head(
        language, "workload", "split", "goodput", "good-share", "against-both",
        "output-tokens-per-s", "ttft-p50", "ttft-p90", "tpot-p50", "pair-share", "failed",
    )  # fmt: skip
    advice = tuple(
        (
            f"{one.workload} {one.rate_qps:g} qps" if one.rate_qps else one.workload,
            one.best_split,
            one.gain,
            say("pays" if one.pays else "pays-not", language),
        )
        for one in report.advice
    )
    title = say("splits", language)
    return Section(
        title=title,
        text=(say("splits-about", language),),
        tables=(
            Table(
                caption=say("advice", language),
                head=_head(language, "workload", "best-split", "against-both", "advice"),
                rows=advice,
            ),
            Table(caption=title, head=head, rows=rows),
        ),
    )
