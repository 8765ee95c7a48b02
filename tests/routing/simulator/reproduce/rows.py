"""Stage rows with what a test wants to say."""

from routing.simulator.reproduce.stages import StageRow


def make_row(
    rate: float,
    output: float,
    *,
    published: float | None = None,
    ttft: float | None = None,
    ttft_p90: float | None = None,
    tpot_ms: float | None = None,
    is_warm_up: bool = False,
) -> StageRow:
    """Simulated and published output; times of the simulated side, all of one length."""
    return StageRow(
        case="case",
        router="router",
        policy="random",
        is_warm_up=is_warm_up,
        rate_qps=rate,
        sent=10,
        failed=0,
        requests_per_s=output / 1000,
        out_tok_s=output,
        ttft_mean_s=ttft,
        ttft_p50_s=ttft,
        ttft_p90_s=ttft if ttft_p90 is None else ttft_p90,
        tpot_mean_ms=tpot_ms,
        hit_rate=None,
        published_requests_per_s=None,
        published_out_tok_s=published,
        published_ttft_mean_s=None,
        published_ttft_p50_s=None,
        published_ttft_p90_s=None,
        published_tpot_mean_ms=None,
        published_failed=None,
    )
