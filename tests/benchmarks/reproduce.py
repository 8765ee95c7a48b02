"""Published results of llm-d against the simulator: every stage, every band; `make reproduce`.

    python -m tests.benchmarks.reproduce [--only guide-perrate-precise07,...] [--processes 2]

Prints a table per run as it ends and one of the bands, writes `var/bench/reproduce.json`, and ends
with 1 when a band is missed. With `--only` the bands of other cases are left out.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from routing.simulator.reproduce.stages import StageRow
from routing.simulator.reproduce.tasks import FOUR_ROUTERS, GUIDE, Task, run_task, tasks
from routing.simulator.reproduce.verdicts import Verdict, bands, published_rows, verdicts

OUT = Path("var/bench/reproduce.json")
COLUMNS = (
    ("out_tok_s", "{:9,.0f}"),
    ("ttft_mean_s", "{:8.2f}"),
    ("ttft_p50_s", "{:8.2f}"),
    ("tpot_mean_ms", "{:7.1f}"),
)

Results = dict[tuple[str, str], list[StageRow]]


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases, separated by commas")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    cases = set(filter(None, options.only.split(",")))
    began = time.monotonic()
    results = _run(_wanted(cases), options.processes)
    found = verdicts(results)
    if cases:
        judged = {band.id for band in bands() if band.case in cases}
        found = [verdict for verdict in found if verdict.id in judged]
    _print_bands(found)
    _write(options.out, results, found, seconds=time.monotonic() - began)
    sys.exit(0 if all(verdict.is_met for verdict in found) else 1)


def _wanted(cases: set[str]) -> list[Task]:
    if FOUR_ROUTERS in cases:
        cases = cases | {GUIDE}
    return [task for task in tasks() if not cases or task.case in cases]


def _run(wanted: Sequence[Task], processes: int) -> Results:
    results: Results = {}
    with ProcessPoolExecutor(processes) as pool:
        running = {pool.submit(run_task, task): task for task in wanted}
        for future in as_completed(running):
            task = running[future]
            results[task.key] = future.result()
            print(f"\n[{len(results)}/{len(running)}]", end=" ")
            _print_rows(task, results[task.key])
    return {task.key: results[task.key] for task in wanted}


def _print_rows(task: Task, rows: Sequence[StageRow]) -> None:
    policy = rows[0].policy
    print(f"{task.case}, {task.router} ({policy}): simulated | published, failed in brackets")
    print("    qps   out tok/s            TTFT mean s         TTFT p50 s          TPOT ms")
    for row in rows:
        cells = "  ".join(_cell(row, name, form) for name, form in COLUMNS)
        mark = " warm-up" if row.is_warm_up else ""
        published = "-" if row.published_failed is None else row.published_failed
        print(f"{row.rate_qps:7.1f} {cells}  ({row.failed} | {published}){mark}", flush=True)


def _print_bands(found: Sequence[Verdict]) -> None:
    print("\nBand" + " " * 72 + "limits        simulated  published")
    for one in found:
        mark = "met" if one.is_met else "MISSED"
        print(
            f"{one.id:20} {one.text[:54]:54} {_limits(one):>13} {_number(one.simulated):>10}"
            f" {_number(one.published):>10}  {mark}"
        )


def _cell(row: StageRow, name: str, form: str) -> str:
    width = len(form.format(0))
    sides = (getattr(row, name), getattr(row, f"published_{name}"))
    return "|".join("-".rjust(width) if side is None else form.format(side) for side in sides)


def _limits(one: Verdict) -> str:
    return f"{_number(one.low)}..{_number(one.high)}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _write(out: Path, results: Results, found: Sequence[Verdict], *, seconds: float) -> None:
    rows = [msgspec.to_builtins(row) for row in published_rows(results)]
    others = [
        msgspec.to_builtins(row)
        for some in results.values()
        for row in some
        if row.published_out_tok_s is None
    ]
    written = {
        "confidence": "simulated",
        "seconds": round(seconds, 1),
        "bands": [msgspec.to_builtins(verdict) for verdict in found],
        "rows": rows,
        "without_published": others,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
