"""A published run, simulated: one row a stage with both sides."""

from collections.abc import Callable, Collection

import msgspec

from routing.core.document import Policy
from routing.simulator.calibration.routers import router_of
from routing.simulator.published.running import kept_stages, scenario_of
from routing.simulator.published.tables import Row, members, table, traffic
from routing.simulator.report.stage import Spread, StageReport, stage_reports
from routing.simulator.simulation import Simulation

SEED = 1


class StageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Fields without a prefix are simulated; `published_` ones are `None` where not published."""

    case: str
    """Id of the published result."""
    router: str
    policy: str
    is_warm_up: bool
    rate_qps: float
    sent: int
    failed: int
    requests_per_s: float
    out_tok_s: float
    """In tokens as the load generator counts them."""
    ttft_mean_s: float | None
    ttft_p50_s: float | None
    ttft_p90_s: float | None
    tpot_mean_ms: float | None
    hit_rate: float | None
    published_requests_per_s: float | None
    published_out_tok_s: float | None
    published_ttft_mean_s: float | None
    published_ttft_p50_s: float | None
    published_ttft_p90_s: float | None
    published_tpot_mean_ms: float | None
    published_failed: int | None


def simulate(
    result: str,
    router: str,
    *,
    rates: Collection[float] | None = None,
    policy: Policy | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[StageRow]:
    """All stages of a published run, or those of some rates, in order.

    `policy` is another one on the same load.
    """
    used = table(result, "service" if router == "service" else "llm-d")
    endpoints = sum(member.count for member in members(used.fleet))
    source = used.source if router != "service" else "service"
    scenario = scenario_of(
        used,
        surroundings=router_of(source, endpoints=endpoints),
        policy=policy,
        rates=rates,
    )
    run = Simulation(scenario, seed=SEED)
    run.run(should_stop=should_stop)
    kept = {stage.name for stage in kept_stages(used, rates)}
    rows = [
        row
        for row, stage in zip(used.rows, used.stages, strict=True)
        if stage.is_warm_up or stage.name in kept
    ]
    counted = traffic(used.workload).counted_output_tokens
    pairs = zip(rows, stage_reports(run), strict=False)
    name = scenario.policy
    return [row_of(used.id, router, name, row, one, counted) for row, one in pairs]


def row_of(
    case: str, router: str, policy: str, row: Row | None, report: StageReport, counted: int
) -> StageRow:
    """Both sides of a stage; the load generator counts `counted` tokens of an answer."""
    return StageRow(
        case=case,
        router=router,
        policy=policy,
        is_warm_up=report.is_warm_up,
        rate_qps=report.rate_qps or 0.0,
        sent=report.sent,
        failed=report.sent - report.ok,
        requests_per_s=report.requests_per_s,
        out_tok_s=report.requests_per_s * counted,
        ttft_mean_s=_mean(report.ttft),
        ttft_p50_s=report.ttft.p50 if report.ttft else None,
        ttft_p90_s=report.ttft.p90 if report.ttft else None,
        tpot_mean_ms=_milliseconds(_mean(report.tpot)),
        hit_rate=report.prefix_hit_rate,
        published_requests_per_s=row.requests_per_s if row else None,
        published_out_tok_s=row.out_tok_s if row else None,
        published_ttft_mean_s=row.ttft_mean_s if row else None,
        published_ttft_p50_s=row.ttft_p50_s if row else None,
        published_ttft_p90_s=row.ttft_p90_s if row else None,
        published_tpot_mean_ms=_milliseconds(row.tpot_mean_s) if row else None,
        published_failed=row.failed if row else None,
    )


def _mean(spread: Spread | None) -> float | None:
    return None if spread is None else spread.mean


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
