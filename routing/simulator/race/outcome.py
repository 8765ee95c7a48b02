"""Everything that a race gave, as JSON."""

from collections.abc import Sequence

import msgspec

from routing.simulator.race.heat import HeatReport
from routing.simulator.race.judges import Verdict, unjudged, verdicts
from routing.simulator.race.roles import SplitAdvice, SplitRow, advice_of, split_rows
from routing.simulator.race.standings import Row, rows_of


class RaceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a race gave. All of it is simulated."""

    is_quick: bool
    """Stages too short to judge by."""
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]
    splits: tuple[SplitRow, ...] = ()
    advice: tuple[SplitAdvice, ...] = ()

    def as_json(self) -> bytes:
        """Indented; equal races give equal bytes."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def outcome_of(reports: Sequence[HeatReport], *, is_quick: bool) -> RaceReport:
    """Rows, verdicts and splits of all heats."""
    rows, splits = rows_of(reports), split_rows(reports)
    judged = verdicts(rows)
    return RaceReport(
        is_quick=is_quick,
        rows=tuple(rows),
        verdicts=tuple(unjudged(judged, "quick") if is_quick else judged),
        splits=tuple(splits),
        advice=tuple(advice_of(splits)),
    )
