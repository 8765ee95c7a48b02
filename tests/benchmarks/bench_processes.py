"""Several processes and several routers against one, on real processes.

    python -m tests.benchmarks.bench_processes [--rate 40] [--seconds 30] [--only processes,kill]

`processes`: twenty simulated engines of three vendors and one router, with 1 and with 4 processes,
the same load. `kill`: two routers that are peers of each other, one of them killed half way; the
load generator sends what got no answer to the other. `gossip`: the time that four processes spend
on gossip under a load of whole answers, per request and as a share at 500 requests/s of the router.
Figures of a run compare with each other only.
 Writes `var/bench/processes.json`.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from routing.testbed.load import run_load
from routing.testbed.load_plan import LoadSpec
from routing.testbed.load_report import Outcome, Targets
from tests.benchmarks import bench_proxy, fleet, processes
from tests.benchmarks.fleet import KEY, MODEL, Fleet, Router

OUT = Path("var/bench/processes.json")
SLO_TTFT_SECONDS, SLO_TPOT_SECONDS = 3.0, 0.08
PROCESSES = 4
RECOVERED_SECONDS = 5.0
"""After a kill, until goodput has to be back."""


def main() -> None:
    """Run what is asked for, print each figure, write the file."""
    options = _parser().parse_args()
    found: dict[str, Any] = {}
    parts = {"processes": _processes, "kill": _kill, "gossip": _gossip}
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="processes-") as folder:
            found[name] = parts[name](Path(folder), options)
        print(json.dumps({name: found[name]}), flush=True)
    known = json.loads(OUT.read_text()) if OUT.exists() else {}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(known | found | {"cores": os.cpu_count()}, indent=2) + "\n")
    print(f"written to {OUT}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="processes,kill,gossip")
    parser.add_argument("--rate", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--warm-up", type=int, default=300, help="requests before measuring")
    parser.add_argument("--speed", type=float, default=0.5, help="model seconds per second")
    parser.add_argument("--seed", type=int, default=7)
    return parser


def _spec(urls: tuple[str, ...], options: argparse.Namespace, **more: Any) -> LoadSpec:
    slower = 1 / options.speed
    return LoadSpec(
        urls=urls, key=KEY, model=MODEL, rate=options.rate, timeout_seconds=120.0,
        slo_ttft_seconds=SLO_TTFT_SECONDS * slower, slo_tpot_seconds=SLO_TPOT_SECONDS * slower,
        **more,
    )  # fmt: skip


def _processes(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The same load through one process and through four."""
    rows: dict[str, Any] = {}
    with Fleet(folder=folder, speed=options.speed) as pool:
        for count in (1, PROCESSES):
            router = pool.start_router(f"with-{count}", "--processes", str(count))
            rows[str(count)] = _measure(pool, router, options)
            print(json.dumps({str(count): rows[str(count)]}), flush=True)
            router.process.terminate()
            router.process.wait(20)
    one, four = (rows[str(count)]["goodput_per_second"] for count in (1, PROCESSES))
    return {"rows": rows, "goodput_share": round(four / one, 4) if one and four else None}


def _measure(pool: Fleet, router: Router, options: argparse.Namespace) -> dict[str, Any]:
    for engine in pool.running:
        processes.post(engine.port, "/reset_prefix_cache", b"")
    pool.push(router, policy={"name": "consort"})
    uvloop.run(run_load(_spec((router.url,), options, seed=1, requests=options.warm_up)))
    pids = _pids(router)
    before = {pid: processes.own_cpu_seconds(pid) for pid in pids}
    spec = _spec((router.url,), options, seed=2, duration_seconds=options.seconds)
    report = uvloop.run(run_load(spec))
    spent = {pid: processes.own_cpu_seconds(pid) - before[pid] for pid in pids}
    return {
        "requests": report.sent,
        "failed": report.failed,
        "goodput_per_second": report.goodput_per_second,
        "hit_rate": report.prefix_hit_rate,
        "ttft_p50": report.ttft_seconds.p50,
        "e2e_p50": report.e2e_seconds.p50,
        "cpu_seconds": [round(value, 2) for value in spent.values()],
        "max_send_lag_seconds": round(report.max_send_lag_seconds, 3),
    }


def _pids(router: Router) -> list[int]:
    """The supervisor's, then those of its processes."""
    state = fleet.admin(router, "GET", "/admin/state")
    return [router.process.pid, *(one["pid"] for one in state.get("processes", []))]


def _kill(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Two routers, one of them killed: goodput before, and from some seconds after."""
    secret = folder / "secret"
    with Fleet(folder=folder, speed=options.speed) as pool:
        secret.write_text("a secret that both routers hold")
        ports = processes.free_ports(2)
        routers = [
            pool.start_router(
                f"r{number}",
                *("--gossip-port", str(ports[number])),
                *("--peer", f"127.0.0.1:{ports[1 - number]}"),
                *("--gossip-secret-file", str(secret)),
            )
            for number in range(2)
        ]
        for router in routers:
            pool.push(router, policy={"name": "consort"})
        urls = tuple(router.url for router in routers)
        uvloop.run(run_load(_spec(urls, options, seed=1, requests=options.warm_up)))
        return uvloop.run(_run_and_kill(routers[0], urls, options))


async def _run_and_kill(
    victim: Router, urls: tuple[str, ...], options: argparse.Namespace
) -> dict[str, Any]:
    outcomes: list[Outcome] = []
    spec = _spec(urls, options, seed=2, duration_seconds=options.seconds)
    began = time.perf_counter()
    load = asyncio.create_task(run_load(spec, ended=outcomes.append))
    await asyncio.sleep(options.seconds / 2)
    victim.process.send_signal(signal.SIGKILL)
    killed_at = time.perf_counter()
    report = await load
    ends = began + options.seconds
    quiet = began + options.seconds / 10
    # Streams that the killed router had open are cut, which no other router can prevent.
    cut = [one for one in outcomes if one.sent_at < killed_at and not one.ok]
    whole = [one for one in outcomes if one not in cut]
    before = _good_share(whole, spec, quiet, killed_at)
    during = _good_share(outcomes, spec, killed_at, killed_at + RECOVERED_SECONDS)
    after = _good_share(outcomes, spec, killed_at + RECOVERED_SECONDS, ends)
    return {
        "good_share_before": before,
        "good_share_within_5_s": during,
        "good_share_after_5_s": after,
        "after_to_before": round(after / before, 4) if before else None,
        "requests": report.sent,
        "failed": report.failed,
        "cut_streams": len(cut),
    }


def _gossip(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Scripted engines, so that all the time there is goes to the router."""
    engines, ports = bench_proxy.start(str(Path(bench_proxy.__file__)), "--role", "engines")
    router, ready = bench_proxy.launch_router(
        str(folder), ports, "consort", "--processes", str(PROCESSES)
    )
    try:
        uvloop.run(bench_proxy.drive(ready["port"], "n1k", 500))
        before, began = _gossip_seconds(ready["admin_port"]), time.perf_counter()
        load = uvloop.run(bench_proxy.drive(ready["port"], "n1k", 4000))
        elapsed = time.perf_counter() - began
        spent = _gossip_seconds(ready["admin_port"]) - before
    finally:
        for process in (router, engines):
            bench_proxy.stop(process)
    rate = load.answers / elapsed
    return {
        "requests_per_second": round(rate, 1),
        "gossip_us_per_request": round(1e6 * spent / load.answers, 1),
        "share_of_a_process": round(spent / elapsed / PROCESSES, 4),
        "share_at_500_per_second": round(spent / elapsed / PROCESSES * min(1.0, 500 / rate), 4),
    }


def _gossip_seconds(admin_port: int) -> float:
    """Of all processes together."""
    address = f"http://127.0.0.1:{admin_port}/metrics"
    with urllib.request.urlopen(address, timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith("consort_gossip_seconds_total ")]
    return float(found[0].rpartition(" ")[2])


def _good_share(outcomes: list[Outcome], spec: LoadSpec, start: float, end: float) -> float:
    """Of the requests sent in a span, those that met both targets."""
    sent = [one for one in outcomes if start <= one.sent_at < end]
    targets = Targets(spec.slo_ttft_seconds, spec.slo_tpot_seconds)
    good = [one for one in sent if one.ok and targets.met_by(one)]
    return round(float(np.divide(len(good), max(1, len(sent)))), 4)


if __name__ == "__main__":
    main()
