"""Rows and stage reports as a race would make them."""

from routing.simulator.race.standings import Entry, Row
from routing.simulator.report.stage import Spread, StageReport


def entry(goodput: float, throughput: float = 1000.0) -> Entry:
    """Of a policy."""
    return Entry(
        goodput_rps=goodput,
        good_share=1.0, ttft_p50_s=0.1, ttft_p90_s=0.2, output_tokens_per_s=throughput,
        prefix_hit_rate=0.5, cost_per_million_output_tokens=None, tpot_p50_s=0.02, failed=0.0,
    )  # fmt: skip


def row(
    policies: dict[str, Entry],
    *,
    rate: float = 20.0,
    fleet: str = "homogeneous-8xmi325x",
    is_mixed: bool = False,
) -> Row:
    """Of `nxt-granite-6k`."""
    return Row(
        workload="nxt-granite-6k", fleet=fleet, rate_qps=rate, stage=f"{rate:g} qps",
        is_mixed=is_mixed, seeds=(1, 2, 3), currency="USD", policies=policies,
    )  # fmt: skip


def stage(
    goodput: float, *, share: float = 0.9, ttft: float | None = 0.5, pairs: float = 0.0
) -> StageReport:
    """Of a run at 20 requests/s."""
    times = None if ttft is None else Spread(mean=ttft, p50=ttft, p90=ttft, p99=ttft)
    return StageReport(
        name="20 qps", rate_qps=20.0, is_warm_up=False, sent=100, ok=90, ends={"ok": 90},
        seconds=10.0, requests_per_s=9.0, output_tokens_per_s=100 * goodput,
        input_tokens_per_s=1.0, goodput_rps=goodput, good_share=share, prefix_hit_rate=None,
        ttft=times, tpot=times, e2e=times, pair_share=pairs, preemptions=0,
    )  # fmt: skip
