"""Policies on the simulator: three vendors, and shared prefixes that come again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routing.core.document import SpeedPrior
from routing.simulator.fleet import Member, build_fleet
from routing.simulator.profiles import load_profile
from routing.simulator.report.stage import is_good, report_of
from routing.simulator.requests import Arrival, Course
from routing.simulator.scenario import Scenario, Surroundings
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.shared_prefix import SharedPrefix, ladder

MODEL = "granite-4.1-8b"
H100, MI325X, GAUDI = "nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3"
UNIFIED_FLEET = (
    Member(accelerator=H100, count=4),
    Member(accelerator=MI325X, count=8),
    Member(accelerator=GAUDI, count=8),
)
FLEET = (
    Member(accelerator=H100, count=4, role="prefill"),
    Member(accelerator=MI325X, count=8, role="decode"),
    Member(accelerator=GAUDI, count=8),
)
EIGHT_EQUAL = (Member(accelerator=MI325X, count=8),)
# Two H100 a replica with a 32B model: little memory for KV. Constants near published fits.
STARVED_PROFILE = replace(
    load_profile(H100, MODEL),
    accelerator="h100-x2",
    step_seconds=11.0e-3,
    step_seconds_per_sequence=0.06e-3,
    step_seconds_per_context_token=0.060e-6,
    prefill_seconds_per_token=1 / 17_000,
    prefill_seconds_per_token_and_context=0.0,
    kv_tokens=307_328,
    kv_bytes_per_token=262_144,
    max_num_batched_tokens=8192,
)
# Nobody has a data sheet of it: its operator states round numbers.
STARVED_PRIOR = SpeedPrior(
    prefill_tokens_per_second=20_000,
    step_seconds=1e-2,
    step_seconds_per_sequence=1e-4,
    step_seconds_per_context_token=5e-8,
    kv_bytes_per_token=262_144,
)
STARVED = (Member(accelerator="h100-x2", count=8, profile=STARVED_PROFILE, prior=STARVED_PRIOR),)


@dataclass(frozen=True, kw_only=True)
class Load:
    """`stages` are (requests per second, seconds); only what arrives in the last one counts."""

    groups: int = 150
    prompts: int = 5
    system_tokens: int = 6000
    question_tokens: int = 1200
    output_tokens: int = 150
    stages: tuple[tuple[float, float], ...] = ((30.0, 20.0),)
    is_streamed: bool = True

    def workload(self) -> "_Traffic":
        """As the simulator takes it."""
        traffic = SharedPrefix(
            id="load",
            stages=ladder(*self.stages),
            groups=self.groups,
            prompts=self.prompts,
            system_tokens=self.system_tokens,
            question_tokens=self.question_tokens,
            output_tokens=self.output_tokens,
        )
        return _Traffic(traffic, is_streamed=self.is_streamed)


class _Traffic:
    """Clients that stream, or do not, and that state no length of their answers."""

    def __init__(self, traffic: SharedPrefix, *, is_streamed: bool) -> None:
        self._traffic, self._is_streamed = traffic, is_streamed
        self.id, self.stages = traffic.id, traffic.stages

    def arrivals(self, stage: int, rng: np.random.Generator) -> Any:
        """See `Workload`."""
        for arrival in self._traffic.arrivals(stage, rng):
            yield self._changed(arrival)

    def _changed(self, arrival: Arrival) -> Arrival:
        return replace(arrival, is_streamed=self._is_streamed, max_tokens=None)


class Outcome:
    """What became of the requests of the last stage."""

    def __init__(self, run: Simulation) -> None:
        self._run = run
        last = len(run.scenario.workload.stages) - 1
        self.sent = [course for course in run.courses if course.stage == last]
        self.courses: list[Course] = [course for course in self.sent if course.outcome == "ok"]
        self.report = report_of(run.scenario.workload.stages[last], self.sent, run.scenario)

    @property
    def ttft(self) -> list[float]:
        return [course.ttft for course in self.courses if course.ttft is not None]

    @property
    def e2e(self) -> list[float]:
        return [course.e2e for course in self.courses if course.e2e is not None]

    @property
    def hit_rate(self) -> float:
        return self.report.prefix_hit_rate or 0.0

    @property
    def destinations(self) -> Counter[str | None]:
        return Counter(course.destination for course in self.courses)

    @property
    def in_time(self) -> float:
        """Share of requests that met both targets."""
        return sum(is_good(course, self._run.scenario) for course in self.sent) / len(self.sent)

    def of_class(self, accelerator: str) -> list[Course]:
        """Those that an accelerator's endpoints answered."""
        return [one for one in self.courses if (one.destination or "").startswith(accelerator)]


def outcome_of(
    policy: str,
    load: Load | None = None,
    *,
    fleet: Sequence[Member] = FLEET,
    slow: dict[str, float] | None = None,
    seed: int = 7,
    **surroundings: Any,
) -> Outcome:
    """One policy under one load; `slow` are speeds of endpoints as shares of their class's."""
    built = build_fleet(fleet, model=MODEL)
    scenario = Scenario(
        document=built.document,
        profiles=built.profiles,
        speeds=slow or {},
        workload=(load or Load()).workload(),
        policy=policy,
        surroundings=Surroundings(**surroundings),
    )
    run = Simulation(scenario, seed=seed)
    run.run()
    assert all(router.leases_open == 0 for router in (front.router for front in run.fronts))
    return Outcome(run)
