"""Sections of a report: policies beside each other over the rates of some stages."""

from collections.abc import Callable, Mapping, Sequence

from routing.simulator.report.html import Page, Section, Table
from routing.simulator.report.messages import Language, say
from routing.simulator.report.stage import StageReport
from routing.simulator.report.svg import MOST_LINES, Chart, Line, Mark

Reports = Mapping[str, Sequence[StageReport]]
"""Stages of each policy."""
Published = Mapping[str, Sequence[tuple[float, float, str]]]
"""Rate, value and who published it, by figure: `throughput`, `goodput`, `ttft-p50`, `ttft-p90`."""

FIGURES = (
    ("throughput", "output-tokens-per-s"),
    ("goodput", "good-per-s"),
    ("ttft-p50", "seconds-log"),
    ("ttft-p90", "seconds-log"),
)
"""What is drawn over the rate, and its unit."""

_VALUES: Mapping[str, Callable[[StageReport], float | None]] = {
    "throughput": lambda stage: stage.output_tokens_per_s,
    "goodput": lambda stage: stage.goodput_rps,
    "ttft-p50": lambda stage: stage.ttft.p50 if stage.ttft else None,
    "ttft-p90": lambda stage: stage.ttft.p90 if stage.ttft else None,
}


def page_of(
    title: str,
    reports: Reports,
    *,
    language: Language = "en",
    published: Published | None = None,
    text: Sequence[str] = (),
) -> Page:
    """A report of one workload on one fleet under some policies."""
    told = [*text, say("simulated", language)]
    if published:
        told.append(say("published", language))
    if len(reports) > MOST_LINES:
        told.append(say("drawn-few", language))
    return Page(
        title=title,
        text=tuple(told),
        sections=(
            section_of("run", title, reports, language=language, published=published or {}),
            *_replicas(reports, language),
        ),
        language=language,
    )


def section_of(
    key: str, title: str, reports: Reports, *, language: Language, published: Published
) -> Section:
    """Plots over the rate, where stages have one, and the table of all stages."""
    return Section(
        title=title,
        charts=tuple(_charts(key, reports, language, published)),
        tables=(_table(reports, language),),
    )


def _charts(key: str, reports: Reports, language: Language, published: Published) -> list[Chart]:
    charts = []
    for figure, unit in FIGURES:
        lines = tuple(_line(name, reports[name], _VALUES[figure]) for name in reports)
        if any(line.points for line in lines):
            charts.append(
                chart_of(key, figure, unit, lines, language=language, published=published)
            )
    return charts


def chart_of(
    key: str,
    figure: str,
    unit: str,
    lines: tuple[Line, ...],
    *,
    language: Language,
    published: Published,
) -> Chart:
    """One of `FIGURES` over the rate."""
    marks = tuple(Mark(x=x, y=y, label=label) for x, y, label in published.get(figure, ()))
    return Chart(
        key=f"{key}-{figure}",
        title=say(figure, language),
        x_title=say("rate", language),
        y_title=say(unit, language),
        lines=lines,
        marks=marks,
        is_log=unit == "seconds-log",
        finding=" ".join(_told(line, language) for line in lines[:MOST_LINES]),
    )


def _line(
    name: str, stages: Sequence[StageReport], value: Callable[[StageReport], float | None]
) -> Line:
    """Over the measured stages that have a rate, in its order."""
    points = [
        (stage.rate_qps, value(stage))
        for stage in stages
        if stage.rate_qps is not None and not stage.is_warm_up
    ]
    return Line(name=name, points=tuple(sorted(points, key=lambda point: point[0])))


def _told(line: Line, language: Language) -> str:
    known = [y for _, y in line.points if y is not None]
    if not known:
        return ""
    first, last = f"{known[0]:,.3g}", f"{known[-1]:,.3g}"
    return say("shown-range", language, name=line.name, first=first, last=last)


def _table(reports: Reports, language: Language) -> Table:
    stages = [stage for own in reports.values() for stage in own]
    currency = next((stage.currency for stage in stages if stage.currency), "")
    head = (
        "stage", "policy", "sent", "failed", "goodput", "good-share", "output-tokens-per-s",
        "ttft-p50", "ttft-p90", "hit-rate",
    )  # fmt: skip
    return Table(
        caption=say("numbers-of", language),
        head=(
            *(say(key, language) for key in head),
            say("cost-per-million", language, currency=currency),
            say("energy", language),
        ),
        rows=tuple(
            (
                stage.name,
                policy,
                stage.sent,
                stage.sent - stage.ok,
                stage.goodput_rps,
                stage.good_share,
                stage.output_tokens_per_s,
                stage.ttft.p50 if stage.ttft else None,
                stage.ttft.p90 if stage.ttft else None,
                stage.prefix_hit_rate,
                stage.cost_per_million_output_tokens,
                stage.energy_wh,
            )
            for policy, own in reports.items()
            for stage in own
        ),
    )


def _replicas(reports: Reports, language: Language) -> list[Section]:
    """What each endpoint did in the last stage."""
    head = (
        "endpoint", "role", "answered", "output-tokens", "hit-rate", "prefill-s", "decode-s",
        "idle-s", "down-s", "energy",
    )  # fmt: skip
    sections = []
    for policy, stages in reports.items():
        if not stages or not stages[-1].replicas:
            continue
        title = say("replicas-of", language, policy=policy)
        rows = tuple(
            (
                own.endpoint,
                own.role,
                own.answered,
                own.output_tokens,
                own.prefix_hit_rate,
                own.spent.prefill,
                own.spent.decode,
                own.spent.idle,
                own.spent.down,
                own.energy_wh,
            )
            for own in stages[-1].replicas
        )
        table = Table(caption=title, head=tuple(say(key, language) for key in head), rows=rows)
        sections.append(Section(title=title, tables=(table,)))
    return sections
