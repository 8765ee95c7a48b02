"""Policies against each other on real processes: the same load, the same engines, one table.

    python -m tests.benchmarks.live_race [--policies consort,random] [--rate 40] [--seconds 45]

Twenty simulated engines of three vendors, one router. Before each policy the engines' caches and
the router's knowledge are emptied and a warm-up load is sent. The engines run in simulated time, as
slow as two cores can carry (`--speed`): figures of a run compare with each other only. Writes
`var/bench/live-race.json`.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvloop

from routing.testbed.load import run_load
from routing.testbed.load_plan import LoadSpec
from routing.testbed.load_report import LoadReport
from tests.benchmarks import fleet, processes
from tests.benchmarks.fleet import KEY, MODEL, Fleet, Router

POLICIES = (
    "random",
    "round-robin",
    "least-requests",
    "llm-d-weighted",
    "llm-d-token-aware",
    "sglang-cache-aware",
    "consort",
)
SLO_TTFT_SECONDS, SLO_TPOT_SECONDS = 3.0, 0.08
OUT = Path("var/bench/live-race.json")


def main() -> None:
    """Race, print the table, write the file."""
    options = _parser().parse_args()
    names = options.policies.split(",")
    with tempfile.TemporaryDirectory(prefix="race-") as folder:
        rows = _race(Path(folder), names, options)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(_document(rows, options), indent=2) + "\n")
    print(f"written to {OUT}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--warm-up", type=int, default=400, help="requests before measuring")
    parser.add_argument("--speed", type=float, default=0.5, help="model seconds per second")
    parser.add_argument("--seed", type=int, default=7)
    return parser


def _race(folder: Path, names: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    with Fleet(folder=folder, speed=options.speed) as pool:
        router = pool.start_router("race")
        for name in names:
            row = _run(pool, router, name, options)
            rows.append(row)
            print(_line(row), flush=True)
    return rows


def _run(pool: Fleet, router: Router, name: str, options: argparse.Namespace) -> dict[str, Any]:
    for engine in pool.running:
        processes.post(engine.port, "/reset_prefix_cache", b"")
    pool.push(router, policy={"name": name})
    fleet.admin(router, "POST", "/admin/reset-knowledge", {"pool": "fleet"})
    warm = _spec(router, options, seed=options.seed, requests=options.warm_up)
    uvloop.run(run_load(warm))
    spent = fleet.cpu_seconds(router.process)
    spec = _spec(router, options, seed=options.seed + 1, seconds=options.seconds)
    report = uvloop.run(_bounded(spec))
    spent = fleet.cpu_seconds(router.process) - spent
    state = fleet.admin(router, "GET", "/admin/state")
    return _row(name, report, state, options) | {"router_cpu_seconds": round(spent, 2)}


async def _bounded(spec: LoadSpec) -> LoadReport:
    async with asyncio.timeout(600):
        return await run_load(spec)


def _spec(
    router: Router,
    options: argparse.Namespace,
    *,
    seed: int,
    requests: int | None = None,
    seconds: float | None = None,
) -> LoadSpec:
    slower = 1 / options.speed
    return LoadSpec(
        urls=(router.url,), key=KEY, model=MODEL, rate=options.rate, requests=requests,
        duration_seconds=seconds, seed=seed, timeout_seconds=120.0,
        slo_ttft_seconds=SLO_TTFT_SECONDS * slower, slo_tpot_seconds=SLO_TPOT_SECONDS * slower,
    )  # fmt: skip


def _row(
    name: str, report: LoadReport, state: dict[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Seconds are those of the engines' model: what a watch shows, times the speed."""
    speed = options.speed

    def model_seconds(spread: Any) -> dict[str, float | None]:
        return {
            key: None if value is None else round(value * speed, 4)
            for key, value in asdict(spread).items()
        }

    return {
        "policy": name,
        "workload": "150 x 5 shared prefixes, 6000 + 1200 -> 150 tokens",
        "fleet": "three vendors, 4 H100-NVL + 8 MI325X + 8 Gaudi 3",
        "rate_per_second": options.rate / speed,
        "requests": report.sent,
        "failed": report.failed,
        "goodput_per_second": _scaled(report.goodput_per_second, 1 / speed),
        "output_tokens_per_second": _scaled(report.output_tokens_per_second, 1 / speed),
        "hit_rate": report.prefix_hit_rate,
        "ttft_seconds": model_seconds(report.ttft_seconds),
        "tpot_seconds": model_seconds(report.tpot_seconds),
        "e2e_seconds": model_seconds(report.e2e_seconds),
        "max_send_lag_seconds": round(report.max_send_lag_seconds, 3),
        "prediction": state["pools"]["fleet"]["prediction_error_by_class"],
        "source": "testbed: real processes, simulated engines",
    }


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 3)


def _line(row: dict[str, Any]) -> str:
    ttft, e2e, tpot = row["ttft_seconds"], row["e2e_seconds"], row["tpot_seconds"]
    return (
        f"{row['policy']:20} goodput {row['goodput_per_second'] or 0:6.2f}/s "
        f"output {row['output_tokens_per_second'] or 0:8.0f} tok/s "
        f"ttft mean {ttft['mean'] or 0:6.3f} p50 {ttft['p50'] or 0:6.3f} "
        f"p99 {ttft['p99'] or 0:6.2f} s "
        f"tpot {1000 * (tpot['mean'] or 0):5.1f} ms e2e mean {e2e['mean'] or 0:6.2f} s "
        f"hit {row['hit_rate'] or 0:.2f} failed {row['failed']} lag {row['max_send_lag_seconds']}"
    )


def _document(rows: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    return {
        "what": "live race of routing policies",
        "options": vars(options),
        "machine": {"cores": os.cpu_count(), "python": sys.version.split()[0]},
        "rows": rows,
    }


if __name__ == "__main__":
    main()
