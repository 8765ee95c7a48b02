"""What the design asks of consort, judged on the rows of a race."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from routing.simulator.race.heat import POLICIES
from routing.simulator.race.standings import OURS, SERVICE, Entry, Row

NEAR_BEST = 0.98
NO_WORSE_THAN_RANDOM = 0.99
THREE_VENDORS, LADDER = "nxt-3vendor", "nxt-granite-6k"


Demand = Literal[
    "best-goodput",
    "near-best-goodput",
    "no-worse-than-random",
    "throughput-over-llm-d",
    "throughput-over-service",
    "goodput-over-llm-d",
]
"""What each asks is said in `report.messages`."""


WhyOpen = Literal["not-run", "peers-not-run", "nothing-served", "quick"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`figure` is the quotient that `bar` bounds from below."""

    demand: Demand
    row: str
    figure: float | None
    """`None` where the peer served nothing, or nobody ran."""
    bar: float
    against: str
    """Whom it was judged against; empty when nobody ran."""
    is_met: bool | None
    """`None` is not judged."""
    why_open: WhyOpen | None = None
    """Why it was not judged."""


def verdicts(rows: Sequence[Row], *, policies: Sequence[str] = POLICIES) -> list[Verdict]:
    """All demands on these rows, and those on the three vendors that have no row.

    What was asked for against all of `policies` can be missed, but not met, while one of them has
    not run.
    """
    found = [verdict for row in rows for verdict in _of_row(row, policies)]
    there = {(verdict.demand, verdict.row) for verdict in found}
    for rate, demand, bar in _THREE_VENDORS:
        name = f"{LADDER}@{THREE_VENDORS} {rate:g} qps"
        if (demand, name) not in there:
            found.append(_open(name, demand, bar, "not-run"))
    return found


def unjudged(found: Sequence[Verdict], why: WhyOpen) -> list[Verdict]:
    """The same demands with their figures, and no judgement."""
    return [msgspec.structs.replace(one, is_met=None, why_open=why) for one in found]


def name_of(row: Row) -> str:
    """As in tables."""
    return f"{row.workload}@{row.fleet} {row.stage}"


def _of_row(row: Row, policies: Sequence[str]) -> Iterator[Verdict]:
    everybody = [name for name in policies if name != OURS]
    if row.is_mixed:
        yield _judged(row, "best-goodput", 1.0, everybody)
    else:
        yield _judged(row, "near-best-goodput", NEAR_BEST, everybody)
    yield _judged(row, "no-worse-than-random", NO_WORSE_THAN_RANDOM, [SERVICE])
    if row.fleet == THREE_VENDORS and row.workload == LADDER:
        llmd = [name for name in everybody if name.startswith("llm-d")]
        for rate, demand, bar in _THREE_VENDORS:
            if row.rate_qps == rate:
                peers = [SERVICE] if demand == "throughput-over-service" else llmd
                yield _judged(row, demand, bar, peers)


def _judged(row: Row, demand: Demand, bar: float, wanted: Sequence[str]) -> Verdict:
    peers = {name: row.policies[name] for name in wanted if name in row.policies}
    if OURS not in row.policies or not peers:
        return _open(name_of(row), demand, bar, "not-run" if peers else "peers-not-run")
    verdict = _compared(row, demand, bar, peers)
    if verdict.is_met and len(peers) < len(wanted):
        return msgspec.structs.replace(verdict, is_met=None, why_open="peers-not-run")
    return verdict


def _compared(row: Row, demand: Demand, bar: float, peers: dict[str, Entry]) -> Verdict:
    value = _output if demand.startswith("throughput") else _goodput
    best = max(peers, key=lambda name: value(peers[name]))
    ours, theirs = value(row.policies[OURS]), value(peers[best])
    figure = ours / theirs if theirs > 0 else None
    # Against nothing, something is enough; of nothing against nothing nobody can tell.
    is_met = figure >= bar if figure is not None else (True if ours > 0 else None)
    if demand == "best-goodput" and figure is not None and _is_level(peers[best], figure):
        bar, is_met = NEAR_BEST, True
    return Verdict(
        demand=demand,
        row=name_of(row),
        figure=figure,
        bar=bar,
        against=best,
        is_met=is_met,
        why_open="nothing-served" if is_met is None else None,
    )


def _is_level(peer: Entry, figure: float) -> bool:
    """The seeds cannot tell: the interval of the difference has zero in it, and the means are
    within 2 %."""
    low, high = peer.goodput_behind_low, peer.goodput_behind_high
    return low is not None and high is not None and low <= 0 <= high and NEAR_BEST <= figure < 1


def _open(row: str, demand: Demand, bar: float, why: WhyOpen) -> Verdict:
    return Verdict(
        demand=demand, row=row, figure=None, bar=bar, against="", is_met=None, why_open=why
    )


def _goodput(entry: Entry) -> float:
    return entry.goodput_rps


def _output(entry: Entry) -> float:
    return entry.output_tokens_per_s


_THREE_VENDORS: tuple[tuple[float, Demand, float], ...] = (
    (85, "throughput-over-llm-d", 1.25),
    (85, "throughput-over-service", 2.0),
    (70, "goodput-over-llm-d", 1.5),
)
"""Rates of the ladder, what is demanded there, and the bar."""
