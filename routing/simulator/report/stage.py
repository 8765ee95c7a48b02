"""Numbers of one stage, with the definitions of the published tables they are compared with.

Throughput is the tokens of the answered requests over the time from the first sending to the last
completion, so the drain counts. Percentiles are over answered requests only; failures stand beside
them. Goodput counts answered requests that met both targets. Unknown is `None`. Cost and energy are
explained in `usage`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec
import numpy as np

from routing.simulator.report.usage import (
    Phases,
    ReplicaReport,
    cost_of,
    cost_per_million,
    phases_between,
    phases_of,
    replica_reports,
)
from routing.simulator.requests import Course, Stage
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Of a time in seconds."""

    mean: float
    p50: float
    p90: float
    p99: float


class StageReport(msgspec.Struct, frozen=True, kw_only=True):
    """See the module. All of it is simulated."""

    name: str
    rate_qps: float | None
    is_warm_up: bool
    sent: int
    ok: int
    ends: dict[str, int]
    """Requests by what became of them: `ok`, `timeout`, `failed`, codes of refusals."""
    seconds: float
    """First sending to last completion."""
    requests_per_s: float
    output_tokens_per_s: float
    input_tokens_per_s: float
    goodput_rps: float
    good_share: float | None = None
    """Of what was sent, how much was answered within both targets; it does not mind the drain."""
    prefix_hit_rate: float | None
    """Share of prompt tokens that were in the cache of the endpoint that computed the prompt."""
    ttft: Spread | None
    tpot: Spread | None
    e2e: Spread | None
    pair_share: float | None
    """Share of answered requests whose prompt was computed by another endpoint."""
    preemptions: int
    spent: Phases | None = None
    """Of all replicas together; `None` where nobody looked, as for a part of a stage."""
    replicas: tuple[ReplicaReport, ...] = ()
    energy_wh: float | None = None
    """Modelled; `None` when an endpoint states no draw."""
    currency: str | None = None
    cost: Decimal | None = None
    """Of the whole fleet for the stage; `None` when an endpoint states no price."""
    cost_per_million_output_tokens: Decimal | None = None


def stage_reports(run: Simulation) -> list[StageReport]:
    """Of every stage that has begun."""
    stages = run.scenario.workload.stages
    by_stage: list[list[Course]] = [[] for _ in stages]
    for course in run.courses:
        by_stage[course.stage].append(course)
    return [
        report_of(stages[number], by_stage[number], run.scenario, spent=_spent(run, number))
        for number in range(len(run.stage_started_at))
    ]


def _spent(run: Simulation, stage: int) -> dict[str, Phases]:
    """By endpoint; of a stage that is not over, up to now."""
    before, is_over = run.spent_before[stage], stage < len(run.spent_after)
    after = run.spent_after[stage] if is_over else run.spent()
    return {name: phases_between(before[name], after[name]) for name in before}


def report_of(
    stage: Stage,
    courses: Sequence[Course],
    scenario: Scenario,
    *,
    spent: Mapping[str, Phases] | None = None,
) -> StageReport:
    """The numbers of some requests, which may still be open; `spent` is by endpoint."""
    answered = [course for course in courses if course.outcome == "ok"]
    seconds = _seconds(courses)
    prompt = sum(course.arrival.prompt.tokens for course in answered)
    good = sum(is_good(course, scenario) for course in answered)
    output = sum(course.output_tokens for course in answered)
    document = scenario.document
    replicas = () if spent is None else replica_reports(document, courses, spent)
    cost = cost_of(document, seconds)
    return StageReport(
        name=stage.name,
        rate_qps=stage.rate_qps,
        is_warm_up=stage.is_warm_up,
        sent=len(courses),
        ok=len(answered),
        ends=dict(Counter(course.outcome for course in courses)),
        seconds=seconds,
        requests_per_s=_rate(len(answered), seconds),
        output_tokens_per_s=_rate(output, seconds),
        input_tokens_per_s=_rate(prompt, seconds),
        goodput_rps=_rate(good, seconds),
        good_share=good / len(courses) if courses else None,
        prefix_hit_rate=sum(course.cached_tokens for course in answered) / prompt
        if prompt
        else None,
        ttft=spread_of([course.ttft for course in answered]),
        tpot=spread_of([course.tpot for course in answered]),
        e2e=spread_of([course.e2e for course in answered]),
        pair_share=sum(course.prefill is not None for course in answered) / len(answered)
        if answered
        else None,
        preemptions=sum(course.preempted for course in courses),
        spent=phases_of([replica.spent for replica in replicas]) if replicas else None,
        replicas=replicas,
        energy_wh=_total([replica.energy_wh for replica in replicas]),
        currency=document.currency,
        cost=cost,
        cost_per_million_output_tokens=cost_per_million(cost, output),
    )


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def is_good(course: Course, scenario: Scenario) -> bool:
    """Answered within both targets; an answer of one token has no time per token to miss."""
    ttft, tpot = course.ttft, course.tpot
    return (
        course.outcome == "ok"
        and ttft is not None
        and ttft <= scenario.ttft_target_seconds
        and (tpot is None or tpot <= scenario.tpot_target_seconds)
    )


def spread_of(values: Sequence[float | None]) -> Spread | None:
    """Of the known values; `None` when there is none."""
    known = np.array([value for value in values if value is not None])
    if not known.size:
        return None
    p50, p90, p99 = np.percentile(known, (50, 90, 99)).tolist()
    return Spread(mean=float(known.mean()), p50=p50, p90=p90, p99=p99)


def _seconds(courses: Sequence[Course]) -> float:
    ends = [course.ended_at for course in courses if course.ended_at is not None]
    return max(ends) - min(course.sent_at for course in courses) if ends else 0.0


def _rate(amount: int, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0
