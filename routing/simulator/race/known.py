"""Published stages that a case of the race repeats, as points for its plots.

A case repeats a published run when fleet, model and workload are the same. The lengths and the
order of stages are not, so the points show where the published figures lie, and judge nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from routing.simulator.fleet import Member
from routing.simulator.published.tables import Router, Row, Table, members, tables
from routing.simulator.race.cases import Case
from routing.simulator.report.comparison import Published
from routing.simulator.report.messages import Language, say

FIGURES: Mapping[str, Callable[[Row], float | None]] = MappingProxyType(
    {
        "throughput": lambda row: row.out_tok_s,
        "ttft-p50": lambda row: row.ttft_p50_s,
        "ttft-p90": lambda row: row.ttft_p90_s,
    }
)
ROUTERS: tuple[Router, ...] = ("service", "llm-d")
BEYOND = 1.1
"""Points up to so many times the highest rate of the case are of use in its plots."""


def published_points(case: Case, *, language: Language = "en") -> Published:
    """Of the first published run of each router; empty for what nobody has published."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for router in ROUTERS:
        table = _first(case, router)
        if table is None:
            continue
        label = say(f"published-{router}", language)
        for figure, value in FIGURES.items():
            points = [(row.rate_qps, value(row)) for row in table.rows[table.warm_up_stages :]]
            found.setdefault(figure, []).extend(
                (rate, known, label)
                for rate, known in points
                if known is not None and rate <= BEYOND * max(case.rates)
            )
    return found


def _first(case: Case, router: Router) -> Table | None:
    if not case.rates or case.its_fleet.troubles:
        return None
    own = _shape(case.its_fleet.members)
    for table in tables():
        same = (table.workload, table.model) == (case.workload, case.its_fleet.model)
        if table.router == router and same and _shape(members(table.fleet)) == own:
            return table
    return None


def _shape(fleet: Iterable[Member]) -> Counter[tuple[str, str, float]]:
    counts: Counter[tuple[str, str, float]] = Counter()
    for member in fleet:
        counts[member.accelerator, member.role, member.speed] += member.count
    return counts
