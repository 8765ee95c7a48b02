"""How fast runs are simulated, and in how much memory (var/bench/simulator.json).

    python -m tests.benchmarks.bench_simulator [--cases ladder,hundred,conversation]

Each case runs in a process of its own, so that its peak memory is its own. The bounds are the
design's: the three-vendor ladder within 20 s of one core, 100,000 requests on 100 replicas within
5 minutes and 1 GB, a load as large as Mooncake's conversation on 20 replicas within 30 s.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from routing.simulator.fleet import Member, build_fleet
from routing.simulator.requests import Arrival, Chain, Stage
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.shared_prefix import SharedPrefix, ladder

MODEL = "granite-4.1-8b"
THREE_VENDORS = (("nvidia-h100-nvl", 4), ("amd-mi325x", 8), ("intel-gaudi3", 8))
LADDER = ((20, 50), (5, 30), (15, 30), (25, 30), (40, 30), (55, 30), (70, 30), (85, 30))
OUT = Path("var/bench/simulator.json")


class Conversations:
    """As large as Mooncake's hour of conversation: 12,031 requests, 12,035 tokens on average in
    blocks of 512 and answers of 343, turns that begin with all turns before."""

    id = "conversations"
    stages = (Stage(name="hour"),)
    sessions, turns = 3008, 4

    def arrivals(self, stage: int, rng: np.random.Generator) -> Iterator[Arrival]:
        """See `Workload`."""
        begins = np.sort(rng.uniform(0, 3500, self.sessions))
        for number, begin in enumerate(begins):
            chain, turns = Chain(512), []
            chain.add("system", 512)
            for turn in range(self.turns):
                chain.add(f"{number}.{turn}", int(rng.exponential(4600)))
                output = max(1, int(rng.exponential(343)))
                turns.append((chain.prompt(), output))
                chain.add(f"{number}.{turn}.answer", output)
            last = None
            for prompt, output in reversed(turns):
                last = Arrival(
                    at=float(begin), prompt=prompt, output_tokens=output, then=last,
                    pause_seconds=30.0,
                )  # fmt: skip
            if last is not None:
                yield last


@dataclass(frozen=True)
class Case:
    """What is run, and its bounds."""

    make: Callable[[], Scenario]
    most_seconds: float
    most_megabytes: float


def scenario(times: int, workload: Any, policy: str, **options: Any) -> Scenario:
    """On so many of the three-vendor fleet."""
    members = [Member(accelerator=name, count=times * count) for name, count in THREE_VENDORS]
    fleet = build_fleet(members, model=MODEL, **options)
    return Scenario(
        document=fleet.document, profiles=fleet.profiles, workload=workload, policy=policy
    )


def ladder_of(policy: str) -> Scenario:
    """The published ladder: 9,938 requests, 10 M output tokens."""
    workload = SharedPrefix(
        id="nxt", stages=ladder(*LADDER, warm_up=1), question_tokens=1546, output_tokens=1030
    )
    return scenario(1, workload, policy)


def hundred() -> Scenario:
    """100,000 requests."""
    workload = SharedPrefix(id="hundred", stages=ladder((200, 500)), groups=750, output_tokens=300)
    return scenario(5, workload, "consort")


CASES = {
    "ladder-consort": Case(lambda: ladder_of("consort"), 20, 1000),
    "ladder-random": Case(lambda: ladder_of("random"), 20, 1000),
    "ladder-llm-d-weighted": Case(lambda: ladder_of("llm-d-weighted"), 20, 1000),
    "conversation": Case(
        lambda: scenario(1, Conversations(), "consort", block_tokens=512), 30, 1000
    ),
    "hundred": Case(hundred, 300, 1000),
}


def measure(name: str, results: "multiprocessing.Queue[dict[str, Any]]") -> None:
    """One case, in this process."""
    run = Simulation(CASES[name].make(), seed=1)
    before = time.process_time()
    run.run()
    results.put(
        {
            "requests": len(run.courses),
            "output_tokens": sum(course.output_tokens for course in run.courses),
            "simulated_seconds": round(run.clock.now, 1),
            "cpu_seconds": round(time.process_time() - before, 1),
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
    )


def measured(name: str) -> dict[str, Any]:
    """One case, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[dict[str, Any]] = context.Queue()
    process = context.Process(target=measure, args=(name, results))
    process.start()
    found = results.get()
    process.join()
    case = CASES[name]
    found["is_met"] = (
        found["cpu_seconds"] <= case.most_seconds and found["peak_megabytes"] <= case.most_megabytes
    )
    return found | {"most_seconds": case.most_seconds, "most_megabytes": case.most_megabytes}


def main() -> int:
    """Run and print; 1 when a bound is not met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", default=",".join(CASES))
    found = {}
    for name in options.parse_args().cases.split(","):
        found[name] = result = measured(name)
        cells = "  ".join(f"{key} {value}" for key, value in result.items())
        sys.stdout.write(f"{name:22} {cells}\n")
        sys.stdout.flush()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if all(result["is_met"] for result in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
