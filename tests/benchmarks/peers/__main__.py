"""Other routers and ours in one run, on this machine: ratios for `docs/benchmarks.md`.

    python -m tests.benchmarks.peers [--rounds 3] [--parts proxy,select]

Peers are installed into environments of their own under `var/peers/`. Everything runs on loopback,
bounded in number and time. Per router and case the least CPU time of all rounds counts. Writes
`var/bench/peers.json`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks import bench_decide
from tests.benchmarks.peers import install, routers

WORK, OUT = Path("var/peers"), Path("var/bench/peers.json")
WORKERS = (8, 64, 512)
PEER = "sglang-router cache_aware"


def main() -> None:
    """Install, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="proxy,select")
    options = parser.parse_args()
    work = WORK.resolve()
    installed = install.install(work)
    result: dict[str, Any] = json.loads(OUT.read_text()) if OUT.is_file() else {}
    result["machine"] = _machine()
    result["peers"] = {name: install.PEERS[name][0] for name, ok in installed.items() if ok}
    if "select" in options.parts and installed["dynamo"]:
        result |= _selection(work, rounds=options.rounds)
    if "proxy" in options.parts:
        result |= _proxies(work, installed, rounds=options.rounds)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k not in ("rows", "select")}, indent=1))


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
    }


def _selection(work: Path, *, rounds: int) -> dict[str, Any]:
    """Dynamo's select() and our decision over the same number of workers, in turn."""
    theirs: dict[str, dict[str, Any]] = {}
    ours: dict[str, float] = {}
    ingest, our_ingest = 0.0, 0.0
    for _ in range(rounds):
        our_ingest = max(our_ingest, _our_ingest())
        for count in WORKERS:
            rows = _dynamo(work, count)
            select = rows["select"]["cpu_us"]
            ingest = max(ingest, rows["ingest"]["blocks_per_cpu_second"] if count == 8 else 0)
            known = theirs.setdefault(str(count), {"cpu_us": select})
            known["cpu_us"] = min(known["cpu_us"], select)
            mine = bench_decide.token_decision_us(count)
            ours[str(count)] = min(ours.get(str(count), mine), mine)
    return {
        "select": {"dynamo_cpu_us": theirs, "consort_cpu_us": ours},
        "decide_over_dynamo_select": {
            count: round(ours[count] / theirs[count]["cpu_us"], 3) for count in ours
        },
        "ingest": {"dynamo_blocks_per_cpu_s": ingest, "consort_blocks_per_cpu_s": our_ingest},
        "ingest_over_dynamo": round(our_ingest / ingest, 3),
    }


def _our_ingest() -> float:
    from tests.benchmarks import bench_index

    return float(bench_index.ingest_blocks_per_cpu_second())


def _dynamo(work: Path, count: int) -> dict[str, Any]:
    script = Path(__file__).with_name("dynamo_probe.py")
    done = subprocess.run(
        [work / "venv-dynamo/bin/python", script, str(count)],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["what"]: row for row in rows}


def _proxies(work: Path, installed: dict[str, bool], *, rounds: int) -> dict[str, Any]:
    rows = routers.compare(work, installed, rounds=rounds)
    least = {
        (row["router"], row["case"]): row["cpu_us_per_request"]
        for row in sorted(rows, key=lambda row: -row["cpu_us_per_request"])
    }
    first = {
        (row["router"], row["case"]): row["first_byte_us_p50"]
        for row in sorted(rows, key=lambda row: -row["first_byte_us_p50"])
    }
    direct = first["direct", "stream"]
    names = sorted({row["router"] for row in rows} - {"direct"})
    return {
        "rows": rows,
        "proxy_cpu_us": {
            name: {case: least[name, case] for case in routers.CASES} for name in names
        },
        "proxy_cpu_over_sglang_cache_aware": {
            case: round(least["consort", case] / least[PEER, case], 3)
            for case in routers.CASES
            if (PEER, case) in least
        },
        "ttft_added_ms_p50": {
            name: round((first[name, "stream"] - direct) / 1000, 2) for name in names
        },
    }


if __name__ == "__main__":
    main()
