"""Every budget of routing with what this machine measures: a table and `var/bench/routing.json`.

    python -m tests.benchmarks [--only decide,index]

CPU time throughout: the machine may be shared. A budget that is not met is shown, never an error.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from routing.engines.vllm import ENGINE

OUT = Path("var/bench/routing.json")
PAGE = Path(__file__).parents[1] / "routing/engines/samples/vllm-0.32.0-metrics-under-load.txt"
Row = dict[str, Any]


def row(what: str, measured: float, unit: str, budget: float, *, at_least: bool = False) -> Row:
    """One line of the table."""
    met = measured >= budget if at_least else measured <= budget
    return {
        "what": what,
        "measured": round(measured, 2),
        "unit": unit,
        "budget": budget,
        "at_least": at_least,
        "met": met,
    }


def decide() -> Iterator[Row]:
    """One decision, hashing included."""
    from tests.benchmarks import bench_decide

    budgets = {8: 120.0, 64: 120.0, 512: 200.0}
    for name, taken in bench_decide.run().items():
        count = int(name.split()[-1])
        yield row(f"decide, {name} endpoints", taken, "us", budgets[count])


def index() -> Iterator[Row]:
    """The exact index."""
    from tests.benchmarks import bench_index

    found = bench_index.run()
    for size, budget in ((28, 1.5e6), (1, 0.8e6)):
        measured = found[f"ingest_{size}_blocks_per_second"]
        value = measured["index"] if isinstance(measured, dict) else measured
        yield row(f"ingest, events of {size}", value, "blocks/s", budget, at_least=True)
    for slots, size in found["bytes_per_block"].items():
        yield row(f"index memory, {slots} instances", size, "B/block", 110.0)
    for slots, taken in found["match_7000_tokens_us"].items():
        yield row(f"match of 7,000 tokens, {slots} endpoints", taken, "us", 64.0)


def scrape() -> Iterator[Row]:
    """One metrics page of 66 kB."""
    page = PAGE.read_bytes()
    taken = []
    for _ in range(50):
        began = time.process_time_ns()
        ENGINE.signals(page)
        taken.append((time.process_time_ns() - began) / 1e6)
    yield row("read a metrics page of 66 kB", sorted(taken)[25], "ms", 1.0)


def proxy() -> Iterator[Row]:
    """Streamed events through the proxy, sockets included."""
    rows = {(one["name"], one["case"]): one for one in _lines("tests.benchmarks.bench_proxy")}
    stream = rows["consort", "s1k"]
    yield row("proxy, CPU per streamed event", stream["cpu_us_per_event"], "us", 12.0)
    floor = rows["floor", "s1k"]["first_byte_ms_p50"]
    added = stream["first_byte_ms_p50"] - floor
    yield row("proxy, added to the first event, p50, 64 streams", added, "ms", 1.0)


def streams() -> Iterator[Row]:
    """A thousand streams of fifty events per second."""
    router = next(
        one for one in _lines("tests.benchmarks.bench_streams") if one["name"] == "router"
    )
    yield row("1,000 streams x 50 events/s, missing", router["missing"], "events", 0.0)
    yield row("1,000 streams x 50 events/s, delay p99", router["delay_ms_p99"], "ms", 20.0)


def sharing() -> Iterator[Row]:
    """One shared system prompt, 96 conversations."""
    rows = {one["policy"]: one for one in _lines("tests.benchmarks.bench_sharing")}
    ours, precise = rows["consort"], rows["llm-d-precise"]
    yield row("shared prompt, endpoints used of 8", ours["endpoints_used"], "", 8, at_least=True)
    yield row("shared prompt, cached share", ours["cached_share"], "", 0.75, at_least=True)
    budget = precise["ttft_ms_p50"]
    yield row("shared prompt, TTFT p50 (llm-d-precise)", ours["ttft_ms_p50"], "ms", budget)


def _lines(module: str) -> list[Row]:
    done = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, check=True, timeout=900
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "decide": decide,
    "index": index,
    "scrape": scrape,
    "proxy": proxy,
    "streams": streams,
    "sharing": sharing,
}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    names = parser.parse_args().only.split(",")
    rows: list[Row] = []
    for name in names:
        for found in PARTS[name]():
            rows.append({"part": name, **found})
            print(_line(found), flush=True)
    kept = json.loads(OUT.read_text())["rows"] if OUT.is_file() else []
    kept = [one for one in kept if one["part"] not in names]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": sys.version.split()[0]}
    OUT.write_text(json.dumps({"machine": machine, "rows": kept + rows}, indent=2) + "\n")


def _line(found: Row) -> str:
    sign = ">=" if found["at_least"] else "<="
    mark = "met" if found["met"] else "NOT MET"
    limit = f"{sign} {found['budget']:,g}"
    return f"{found['what']:50} {found['measured']:>14,} {found['unit']:9} {limit:>14}  {mark}"


if __name__ == "__main__":
    main()
