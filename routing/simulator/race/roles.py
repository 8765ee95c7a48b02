"""Prefill and decode on endpoints of different vendors, which nobody has published: does it pay?

The same endpoints with several splits of roles (`fleets.SPLITS`), under consort, on four workloads.
KV moves through host memory at the profile's speed, since no two vendors share a faster way.
Articles say that memory-rich cards should prefill for fast ones, and the reverse; both are here,
and milder splits. A split pays from 10 % more goodput than all `both`, where it serves: more of
next to nothing is no gain.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from routing.simulator.race.cases import SPLIT_CASES
from routing.simulator.race.fleets import UNSPLIT
from routing.simulator.race.heat import HeatReport
from routing.simulator.race.standings import mean_of
from routing.simulator.report.stage import StageReport

PAYS_FROM = 1.10
SERVES_FROM = 0.5
"""Share of the requests within the targets; below it a fleet is overloaded whatever its roles."""


class SplitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One split on one workload at one rate: means over the seeds. Simulated; seconds."""

    workload: str
    rate_qps: float | None
    split: str
    goodput_rps: float
    good_share: float | None
    against_both: float | None
    """Goodput over that of all `both`; `None` where that had none."""
    output_tokens_per_s: float
    ttft_p50_s: float | None
    ttft_p90_s: float | None
    tpot_p50_s: float | None
    pair_share: float | None
    """Of answered requests, how many another endpoint computed the prompt of."""
    failed: float


class SplitAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of one workload and rate say."""

    workload: str
    rate_qps: float | None
    best_split: str
    gain: float | None
    """Its goodput over that of all `both`."""
    pays: bool


def split_rows(reports: Sequence[HeatReport]) -> list[SplitRow]:
    """Of all heats of split cases, by workload and rate."""
    by_case: dict[str, list[HeatReport]] = {}
    for report in reports:
        if report.heat.case in SPLIT_CASES:
            by_case.setdefault(report.heat.case, []).append(report)
    found = [
        _row(name, [report.stages[place] for report in own])
        for name, own in by_case.items()
        for place in range(len(own[0].stages))
    ]
    unsplit = {(row.workload, row.rate_qps): row for row in found if row.split == UNSPLIT}
    compared = [_compared(row, unsplit.get((row.workload, row.rate_qps))) for row in found]
    return sorted(compared, key=lambda row: (row.workload, row.rate_qps or 0.0))


def advice_of(rows: Sequence[SplitRow]) -> list[SplitAdvice]:
    """The best real split of each workload and rate, and whether it pays."""
    places: dict[tuple[str, float | None], list[SplitRow]] = {}
    for row in rows:
        if row.split != UNSPLIT:
            places.setdefault((row.workload, row.rate_qps), []).append(row)
    return [_advice(own) for own in places.values()]


def _advice(rows: Sequence[SplitRow]) -> SplitAdvice:
    best = max(rows, key=lambda row: row.goodput_rps)
    return SplitAdvice(
        workload=best.workload,
        rate_qps=best.rate_qps,
        best_split=best.split,
        gain=best.against_both,
        pays=_pays(best),
    )


def _pays(row: SplitRow) -> bool:
    gain, share = row.against_both, row.good_share
    return gain is not None and gain >= PAYS_FROM and share is not None and share >= SERVES_FROM


def _row(name: str, stages: Sequence[StageReport]) -> SplitRow:
    case = SPLIT_CASES[name]
    return SplitRow(
        workload=case.workload,
        rate_qps=stages[0].rate_qps,
        split=case.fleet,
        goodput_rps=float(np.mean([stage.goodput_rps for stage in stages])),
        good_share=mean_of(stages, lambda stage: stage.good_share),
        against_both=None,
        output_tokens_per_s=float(np.mean([stage.output_tokens_per_s for stage in stages])),
        ttft_p50_s=mean_of(stages, lambda stage: stage.ttft.p50 if stage.ttft else None),
        ttft_p90_s=mean_of(stages, lambda stage: stage.ttft.p90 if stage.ttft else None),
        tpot_p50_s=mean_of(stages, lambda stage: stage.tpot.p50 if stage.tpot else None),
        pair_share=mean_of(stages, lambda stage: stage.pair_share),
        failed=float(np.mean([stage.sent - stage.ok for stage in stages])),
    )


def _compared(row: SplitRow, unsplit: SplitRow | None) -> SplitRow:
    if unsplit is None or not unsplit.goodput_rps:
        return row
    return msgspec.structs.replace(row, against_both=row.goodput_rps / unsplit.goodput_rps)
