"""The same load on real processes and in the simulator: policies, and the ratios between them.

    python -m tests.benchmarks.parity [--policies consort,llm-d-weighted] [--rate 80]

Simulated engines of three vendors as processes, one fresh router and empty caches for each policy,
a warm-up, then the load that is measured; after that the same requests at the same times in virtual
time, with the router's seed. Rates and seconds are those of the engines' model. Writes
`var/bench/parity.json`; ends with 1 when a ratio between two policies is off by more than 10 %.
On a busy machine take `--speed` down and `--share` of the engines too: lateness is not modelled.
"""

import argparse
import hashlib
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
import uvloop

from routing.core.document import PoolDocument, parse_document
from routing.simulator.profiles import load_profile
from routing.simulator.requests import Arrival, Course, Prompt, Stage
from routing.simulator.scenario import Scenario, Surroundings
from routing.simulator.simulation import Simulation
from routing.testbed import tokens as tk
from routing.testbed.load import run_load
from routing.testbed.load_plan import LoadSpec, arrival_times, prompt_at, request_body
from routing.testbed.load_report import LoadReport, Outcome, Targets, summarize
from tests.benchmarks import fleet, processes
from tests.benchmarks.fleet import KEY, MODEL, THREE_VENDORS, Fleet

OUT = Path("var/bench/parity.json")
BAND = 0.10
BLOCK_TOKENS = 64
"""As long as the chunks by which this router knows prompts; the engines' blocks are shorter."""
SLO_TTFT_SECONDS, SLO_TPOT_SECONDS = 3.0, 0.08
Figures = dict[str, float]


def main() -> None:
    """Measure, simulate, compare, write."""
    options = _parser().parse_args()
    names = options.policies.split(",")
    engines = {name: max(1, round(count * options.share)) for name, count in THREE_VENDORS.items()}
    live: dict[str, Figures] = {}
    simulated: dict[str, Figures] = {}
    spreads: dict[str, dict[str, tuple[float, float]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="parity-") as folder,
        Fleet(folder=Path(folder), speed=options.speed, engines=engines) as pool,
    ):
        for name in names:
            live[name] = _live(pool, name, options)
            print(_line(name, "testbed", live[name]), flush=True)
        documents = {name: _document(pool, name) for name in names}
    for name in names:
        simulated[name], spreads[name] = _simulated(documents[name], live[name], options)
        print(_line(name, "simulated", simulated[name]), flush=True)
    ratios = list(_ratios(live, simulated))
    for one in ratios:
        print(
            f"{one['of']} / {one['to']}  {one['figure']:24} testbed {one['testbed']:6.3f} "
            f"simulated {one['simulated']:6.3f}  {one['error']:+.1%}"
        )
    OUT.parent.mkdir(parents=True, exist_ok=True)
    written = {
        "band": BAND, "options": vars(options), "engines": engines, "testbed": live,
        "simulated": simulated, "simulated_from_to": spreads, "ratios": ratios,
    }  # fmt: skip
    OUT.write_text(json.dumps(written, indent=1) + "\n")
    sys.exit(any(abs(one["error"]) > BAND for one in ratios))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--policies", default="consort,llm-d-weighted,random")
    add("--rate", type=float, default=80.0, help="requests per second of the model")
    add("--seconds", type=float, default=25.0, help="of the model, measured")
    add("--warm-up", type=int, default=400, help="requests before measuring")
    add("--speed", type=float, default=0.25, help="model seconds per second")
    add("--share", type=float, default=1.0, help="of the 20 engines")
    add("--seed", type=int, default=7, help="of the load")
    add("--seeds", type=int, default=5, help="simulated runs of each policy")
    return parser


def _specs(options: argparse.Namespace, *urls: str) -> tuple[LoadSpec, LoadSpec]:
    """Warm-up and load. Their prompts differ, as their seeds do."""
    warm = LoadSpec(
        urls=urls, key=KEY, model=MODEL, rate=options.rate * options.speed,
        requests=options.warm_up, seed=options.seed, timeout_seconds=300.0,
        slo_ttft_seconds=SLO_TTFT_SECONDS / options.speed,
        slo_tpot_seconds=SLO_TPOT_SECONDS / options.speed,
    )  # fmt: skip
    seconds = options.seconds / options.speed
    return warm, replace(warm, requests=None, duration_seconds=seconds, seed=options.seed + 1)


def _live(pool: Fleet, policy: str, options: argparse.Namespace) -> Figures:
    for engine in pool.running:
        processes.post(engine.port, "/reset_prefix_cache", b"")
    router = pool.start_router(_name(policy))
    pool.push(router, policy={"name": policy})
    warm, load = _specs(options, router.url)
    uvloop.run(run_load(warm))
    spent = fleet.cpu_seconds(router.process)
    report = uvloop.run(run_load(load))
    spent = fleet.cpu_seconds(router.process) - spent
    router.process.terminate()
    router.process.wait(15)
    found = _figures(report, options.speed)
    return found | {
        "failed": report.failed,
        "max_send_lag_seconds": report.max_send_lag_seconds,
        "router_cpu_seconds_per_request": spent / max(report.sent, 1),
    }


def _name(policy: str) -> str:
    return f"parity-{policy}"


def _figures(report: LoadReport, speed: float) -> Figures:
    """In seconds of the model."""
    seconds = {
        "ttft_mean": report.ttft_seconds.mean,
        "ttft_p50": report.ttft_seconds.p50,
        "tpot_mean": report.tpot_seconds.mean,
        "e2e_mean": report.e2e_seconds.mean,
    }
    rates = {
        "goodput_per_second": report.goodput_per_second,
        "output_tokens_per_second": report.output_tokens_per_second,
    }
    found = {name: (value or 0.0) * speed for name, value in seconds.items()}
    found |= {name: (value or 0.0) / speed for name, value in rates.items()}
    return found | {"hit_rate": report.prefix_hit_rate or 0.0}


def _line(policy: str, how: str, found: Mapping[str, float]) -> str:
    return f"{policy:16} {how:9} " + " ".join(f"{key} {value:.4g}" for key, value in found.items())


def _ratios(live: dict[str, Figures], simulated: dict[str, Figures]) -> Iterator[dict[str, Any]]:
    figures = ("goodput_per_second", "output_tokens_per_second", "ttft_p50", "e2e_mean")
    for (first, second), figure in itertools.product(itertools.combinations(live, 2), figures):
        if live[second][figure] and simulated[second][figure]:
            real = live[first][figure] / live[second][figure]
            made = simulated[first][figure] / simulated[second][figure]
            error = made / real - 1
            yield {
                "of": first, "to": second, "figure": figure, "testbed": real,
                "simulated": made, "error": error,
            }  # fmt: skip


class SameLoad:
    """The generator's requests, at its times, as a workload."""

    id = "same-load"
    stages = (Stage(name="warm-up", is_warm_up=True), Stage(name="load"))

    def __init__(self, *specs: LoadSpec) -> None:
        self._specs = specs
        self._prompts: dict[tuple[int, int, int], Prompt] = {}

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`."""
        spec = self._specs[stage]
        for index, at in enumerate(arrival_times(spec)):
            yield Arrival(
                at=at,
                prompt=self._prompt(spec, index),
                output_tokens=spec.output_tokens,
                max_tokens=spec.output_tokens,
            )

    def _prompt(self, spec: LoadSpec, index: int) -> Prompt:
        name = (spec.seed, *prompt_at(spec, index))
        if name not in self._prompts:
            turns = orjson.loads(request_body(spec, index))["messages"]
            ids = tk.tokenize(tk.chat_segments((turn["role"], turn["content"]) for turn in turns))
            keys = tk.block_keys(ids, BLOCK_TOKENS, tk.root_key(None))
            self._prompts[name] = Prompt(tuple(keys), len(ids), BLOCK_TOKENS)
        return self._prompts[name]


def _simulated(
    document: PoolDocument, live: Mapping[str, float], options: argparse.Namespace
) -> tuple[Figures, dict[str, tuple[float, float]]]:
    """Medians over seeds, the router's own first, and between what they lie."""
    own = hashlib.sha256(f"{_name(document.policy.name)}/{document.pool}".encode()).digest()
    first = int.from_bytes(own[:8], "little")
    runs = [_run(document, live, options, seed=first + turn) for turn in range(options.seeds)]
    by_figure = {name: [run[name] for run in runs] for name in runs[0]}
    medians = {name: float(np.median(values)) for name, values in by_figure.items()}
    return medians, {name: (min(values), max(values)) for name, values in by_figure.items()}


def _run(
    document: PoolDocument, live: Mapping[str, float], options: argparse.Namespace, *, seed: int
) -> Figures:
    profiles = {
        spec.id: load_profile(spec.speed_class, MODEL).slower(1 / options.speed)
        for spec in document.endpoints
    }
    warm, load = _specs(options, "http://none:1")
    scenario = Scenario(
        document=document,
        profiles=profiles,
        workload=SameLoad(warm, load),
        policy=document.policy.name,
        surroundings=Surroundings(
            progress_seconds=0.25,
            router_seconds_per_request=live["router_cpu_seconds_per_request"],
        ),
    )
    run = Simulation(scenario, seed=seed)
    run.run()
    outcomes = [_outcome(course) for course in run.courses if course.stage == 1]
    targets = Targets(load.slo_ttft_seconds, load.slo_tpot_seconds)
    return _figures(summarize(outcomes, max_send_lag_seconds=0.0, targets=targets), options.speed)


def _document(pool: Fleet, policy: str) -> PoolDocument:
    document = parse_document(orjson.dumps(pool.document(1, policy={"name": policy})))
    endpoints = tuple(
        msgspec.structs.replace(spec, block_size_tokens=BLOCK_TOKENS) for spec in document.endpoints
    )
    return msgspec.structs.replace(document, endpoints=endpoints)


def _outcome(course: Course) -> Outcome:
    """By the generator's definitions."""
    is_ok = course.outcome == "ok"
    return Outcome(
        index=course.number,
        sent_at=course.sent_at,
        first_at=course.first_token_at,
        last_at=course.ended_at,
        ended_at=course.ended_at if is_ok else None,
        failure=None if is_ok else course.outcome,
        prompt_tokens=course.arrival.prompt.tokens,
        completion_tokens=course.output_tokens,
        cached_tokens=course.cached_tokens,
    )


if __name__ == "__main__":
    main()
