"""What heats give together: one row per case and rate, with means over the seeds and intervals."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import msgspec
import numpy as np

from routing.simulator.race.cases import CASES, Case
from routing.simulator.race.heat import HeatReport
from routing.simulator.report.stage import StageReport
from routing.simulator.report.usage import CENT_OF_A_CENT

OURS = "consort"
SERVICE = "random"
"""A ClusterIP Service chooses at random per connection."""

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t, two-sided 95 %, for 1 to 9 degrees of freedom."""
NORMAL_975 = 1.96


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A policy in a row: means over the seeds. Seconds; `None` where no request was answered."""

    goodput_rps: float
    good_share: float | None
    ttft_p50_s: float | None
    ttft_p90_s: float | None
    output_tokens_per_s: float
    prefix_hit_rate: float | None
    cost_per_million_output_tokens: Decimal | None
    tpot_p50_s: float | None
    failed: float
    """Requests without an answer, per run."""
    goodput_behind: float | None = None
    """Consort's goodput minus this one's: the mean over the seeds."""
    goodput_behind_low: float | None = None
    goodput_behind_high: float | None = None
    """95 % interval of that mean, by pairs of equal seeds; `None` with one seed."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A workload on a fleet at a rate."""

    workload: str
    fleet: str
    rate_qps: float | None
    stage: str
    is_mixed: bool
    seeds: tuple[int, ...]
    currency: str | None
    policies: dict[str, Entry]


def rows_of(reports: Sequence[HeatReport]) -> list[Row]:
    """In the order of the reports' cases and stages; heats of splits are no rows."""
    by_case: dict[str, list[HeatReport]] = {}
    for report in reports:
        if report.heat.case not in CASES:
            continue
        by_case.setdefault(report.heat.case, []).append(report)
    return [
        _row(case, stage, own)
        for case, own in by_case.items()
        for stage in range(len(own[0].stages))
    ]


def _row(name: str, stage: int, reports: Sequence[HeatReport]) -> Row:
    case = CASES[name]
    runs: dict[str, dict[int, StageReport]] = {}
    for report in reports:
        runs.setdefault(report.heat.policy, {})[report.heat.seed] = report.stages[stage]
    ours = runs.get(OURS, {})
    first = reports[0].stages[stage]
    return Row(
        workload=case.workload,
        fleet=case.fleet,
        rate_qps=first.rate_qps or _offered(case, first),
        stage=first.name,
        is_mixed=case.its_fleet.is_mixed,
        seeds=tuple(sorted({report.heat.seed for report in reports})),
        currency=first.currency,
        policies={policy: _entry(own, ours) for policy, own in runs.items()},
    )


def _offered(case: Case, stage: StageReport) -> float | None:
    """Mean rate of a trace; clients in a closed loop have none."""
    seconds = case.its_workload().stages[0].seconds
    return stage.sent / seconds if seconds else None


def _entry(own: Mapping[int, StageReport], ours: Mapping[int, StageReport]) -> Entry:
    stages = list(own.values())
    behind = [
        ours[seed].goodput_rps - stage.goodput_rps for seed, stage in own.items() if seed in ours
    ]
    low, high = interval_of(behind)
    return Entry(
        goodput_rps=float(np.mean([stage.goodput_rps for stage in stages])),
        good_share=mean_of(stages, lambda stage: stage.good_share),
        ttft_p50_s=mean_of(stages, lambda stage: stage.ttft.p50 if stage.ttft else None),
        ttft_p90_s=mean_of(stages, lambda stage: stage.ttft.p90 if stage.ttft else None),
        output_tokens_per_s=float(np.mean([stage.output_tokens_per_s for stage in stages])),
        prefix_hit_rate=mean_of(stages, lambda stage: stage.prefix_hit_rate),
        cost_per_million_output_tokens=_cost(stages),
        tpot_p50_s=mean_of(stages, lambda stage: stage.tpot.p50 if stage.tpot else None),
        failed=float(np.mean([stage.sent - stage.ok for stage in stages])),
        goodput_behind=float(np.mean(behind)) if behind else None,
        goodput_behind_low=low,
        goodput_behind_high=high,
    )


def _cost(stages: Sequence[StageReport]) -> Decimal | None:
    """Mean over the seeds; `None` if one is unknown."""
    costs = [stage.cost_per_million_output_tokens for stage in stages]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    return (sum(known, Decimal(0)) / len(known)).quantize(CENT_OF_A_CENT)


def mean_of(
    stages: Sequence[StageReport], value: Callable[[StageReport], float | None]
) -> float | None:
    """Over those where it is known; `None` where it never is."""
    known = [found for found in map(value, stages) if found is not None]
    return float(np.mean(known)) if known else None


def interval_of(values: Sequence[float]) -> tuple[float | None, float | None]:
    """95 % interval of the mean by Student's t; unknown for fewer than two values."""
    if len(values) < 2:
        return None, None
    freedom = len(values) - 1
    t = T_975[freedom - 1] if freedom <= len(T_975) else NORMAL_975
    half = t * float(np.std(values, ddof=1)) / len(values) ** 0.5
    middle = float(np.mean(values))
    return middle - half, middle + half
