"""What each face adds: time to a request, CPU time to the router's process and to Envoy.

    python -m tests.benchmarks.bench_faces [--seconds 3] [--endpoints 8,64] [--sizes 1kB,30kB,400kB]

In one run over the same fake engines: Envoy alone, Envoy with each face, the embedded proxy. Times
are of one connection at a time, less those of Envoy alone (of the engine alone for the proxy); CPU
time is user plus system time from /proc while 16 connections ask in a closed loop, divided by the
answers. Streams have 200 events. Needs gcc and `make envoy`. Writes `var/bench/faces.json`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import faces_stack, processes
from tests.benchmarks.faces_stack import ENGINES, FIRST_ENGINE_PORT, HERE, Way
from tests.benchmarks.peers import bodies, install

WORK, OUT = Path("var/peers"), Path("var/bench/faces.json")
EVENTS, PACE_MICROSECONDS = 200, 2000
SIZES = {"1kB": 1_000, "30kB": 30_000, "400kB": 400_000}
BUSY, STREAMS = 16, 32
"""Connections of a busy run."""
IDLE_SECONDS = 2.0
FACES = ("ext_authz", "ext_proc", "proxy")
PROCESSES = (1, 2, 4)
"""Processes of a router whose cost per request is compared."""
RATES = (300.0, 900.0)
"""Requests a second then, at equal distances: few enough for any number of processes.

A process tells the others about itself many times a second however few requests there are. So the
difference between two rates is what a request costs, and the rest what a process costs.
"""


def main() -> None:
    """Measure and write."""
    options = _options()
    work = WORK.resolve()
    install.build(work)
    for name, size in SIZES.items():
        bodies.write(work / f"faces-{name}.txt", size=size, stream=False)
    bodies.write(work / "faces-stream.txt", size=SIZES["1kB"], stream=True)
    rows: list[dict[str, Any]] = []
    fakes = f"{work}/fakebackend {FIRST_ENGINE_PORT} {ENGINES} {EVENTS} {PACE_MICROSECONDS}"
    with processes.running(fakes, work / "engines.log"):
        for count in options.endpoints:
            with faces_stack.running(work, count, first=_first(work)) as ways:
                rows += _measured(work, ways, count=count, options=options)
        several = _several(work, seconds=options.seconds)
    result = {"machine": _machine(), "rows": rows, "processes": several}
    for count in options.endpoints:
        told = _told([row for row in rows if row["endpoints"] == count])
        result |= told if count == options.endpoints[0] else {f"endpoints_{count}": told}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({name: told for name, told in result.items() if name != "rows"}, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument(
        "--endpoints", type=lambda text: [int(one) for one in text.split(",")], default=[8, 64]
    )
    parser.add_argument("--sizes", type=lambda text: text.split(","), default=list(SIZES))
    return parser.parse_args()


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": sys.version.split()[0], "load": os.getloadavg()[0]}


def _first(work: Path) -> bytes:
    return (work / "faces-1kB.txt").read_text().split("\n", 1)[0].split("\t", 1)[1].encode()


# What is measured.


def _several(work: Path, *, seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    """The router's CPU time of a request of 1 kB by number of processes, each a picker of its own.

    All processes of the router count, so what they tell each other of a request is in it.
    """
    found: dict[str, dict[str, dict[str, float]]] = {"ext_authz": {}, "ext_proc": {}}
    for number in PROCESSES:
        with faces_stack.running(
            work, 8, first=_first(work), names=tuple(found), routers=number
        ) as ways:
            for way in ways:
                if way.name in found:
                    row = _per_request(work, way, seconds=seconds)
                    print(json.dumps({"way": way.name, "processes": number} | row), flush=True)
                    found[way.name][str(number)] = row
    return found


def _measured(
    work: Path, ways: list[Way], *, count: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    rows = []
    idle = _idle_cores(ways[-1].router or 0)
    for case in (*options.sizes, "stream"):
        for way in ways:
            if way.name == "ext_proc-answers" and case != "stream":
                continue
            alone = None
            if case != "stream":
                alone = _load(work, way, case, connections=1, seconds=options.seconds)
            row = _busy(work, way, case, seconds=options.seconds)
            row |= {"endpoints": count, "way": way.name, "case": case, "idle_cores": idle}
            if alone is not None:
                row |= {"p50_us": alone["p50_us"], "p99_us": alone["p99_us"]}
            print(json.dumps(row), flush=True)
            rows.append(row)
    return rows


def _busy(
    work: Path, way: Way, case: str, *, seconds: float, rate: float | None = None
) -> dict[str, Any]:
    own = {"router": way.router, "envoy": way.envoy}
    before = {who: processes.cpu_seconds(pid) for who, pid in own.items() if pid}
    machine, began = processes.machine_cpu_seconds(), time.monotonic()
    connections = STREAMS if case == "stream" else BUSY
    result = _load(work, way, case, connections=connections, seconds=seconds, rate=rate)
    time.sleep(0.3)  # what is settled after the answer belongs to the request
    spent = {who: processes.cpu_seconds(pid) - before[who] for who, pid in own.items() if pid}
    busy, took = processes.machine_cpu_seconds() - machine, time.monotonic() - began
    return {
        "requests": result["ok"],
        "seconds": round(took, 3),
        "events": result["events"],
        "requests_per_second": round(result["rps"], 1),
        "cpu_us": {who: round(1e6 * used / result["ok"], 1) for who, used in spent.items()},
        "busy_cores": round(busy / took, 2),
    }


def _load(
    work: Path,
    way: Way,
    case: str,
    *,
    connections: int,
    seconds: float,
    rate: float | None = None,
) -> dict[str, Any]:
    """As many as the connections carry, or so many a second at equal distances."""
    line = [
        str(work / "loadgen"), HERE, str(way.port), "/v1/chat/completions",
        str(work / f"faces-{case}.txt"), str(connections), str(seconds),
        *(("0", str(rate)) if rate else ()),
    ]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)
    result: dict[str, Any] = json.loads(done.stdout)
    if result["errors"] or not result["ok"]:
        sys.exit(f"{way.name}, {case}: {result['errors']} refused, {result['ok']} answered.")
    return result


def _idle_cores(router: int) -> float:
    """What a router does without any request: it reads the metrics of its engines."""
    before = processes.cpu_seconds(router)
    time.sleep(IDLE_SECONDS)
    return round((processes.cpu_seconds(router) - before) / IDLE_SECONDS, 3)


def _per_request(work: Path, way: Way, *, seconds: float) -> dict[str, float]:
    """From two rates: CPU of a request, and of the processes beside requests in cores."""
    cores = {}
    for rate in RATES:
        row = _busy(work, way, "1kB", seconds=seconds, rate=rate)
        spent = 1e-6 * row["cpu_us"]["router"] * row["requests"]
        cores[row["requests"] / row["seconds"]] = spent / row["seconds"]
    (low, few), (high, many) = sorted(cores.items())
    of_a_request = (many - few) / (high - low)
    return {
        "cpu_us_per_request": round(1e6 * of_a_request, 1),
        "cores_beside": round(few - low * of_a_request, 3),
        "rates": [round(low), round(high)],
    }


# What is told.


def _told(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = {(row["way"], row["case"]): row for row in rows}
    cases = [case for case in SIZES if ("envoy", case) in found]
    ground = {"proxy": "engine", "ext_authz": "envoy", "ext_proc": "envoy"}

    def added(way: str, case: str, name: str) -> float:
        return round((found[way, case][name] - found[ground[way], case][name]) / 1000, 3)

    def table(value: Any) -> dict[str, dict[str, float]]:
        return {way: {case: value(way, case) for case in cases} for way in FACES}

    return {
        "added_p50_ms": table(lambda way, case: added(way, case, "p50_us")),
        "added_p99_ms": table(lambda way, case: added(way, case, "p99_us")),
        "cpu_us_per_request": table(lambda way, case: found[way, case]["cpu_us"]["router"]),
        "envoy_cpu_us_per_request": {
            way: {case: found[way, case]["cpu_us"]["envoy"] for case in cases}
            for way in ("envoy", "ext_authz", "ext_proc")
        },
        "requests_per_second": table(lambda way, case: found[way, case]["requests_per_second"]),
        "cpu_us_per_event": {way: _per_event(found, way) for way in (*FACES, "ext_proc-answers")},
    }


def _per_event(found: dict[tuple[str, str], dict[str, Any]], way: str) -> float | None:
    """What a streamed answer costs the router beyond a whole one, by its events.

    Below 0 it is noise.
    """
    whole = found.get((way.removesuffix("-answers"), "1kB"))
    if whole is None:
        return None
    more = _beyond_idle_us(found[way, "stream"]) - _beyond_idle_us(whole)
    return round(more / EVENTS, 2)


def _beyond_idle_us(row: dict[str, Any]) -> float:
    idle_us = 1e6 * row["idle_cores"] * row["seconds"] / row["requests"]
    return float(row["cpu_us"]["router"] - idle_us)


if __name__ == "__main__":
    main()
