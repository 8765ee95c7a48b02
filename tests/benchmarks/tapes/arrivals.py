"""A tape's requests alone, given to the simulator with the engines' profiles.

The simulator hears when each request came, its prompt as block keys, and how long its answer was.
It computes everything else: engines, their metrics and cache events, and so the picks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from routing.core.document import parse_document
from routing.simulator.requests import Arrival, Course, Prompt, Stage
from routing.simulator.scenario import Scenario, Surroundings
from routing.simulator.simulation import Simulation
from tests.benchmarks.tapes.replayer import prompts_of
from tests.benchmarks.tapes.tape import Tape

QUIET_SECONDS = 2.0
"""Readings and events before the first request, as in the recorded run."""


@dataclass(slots=True, kw_only=True)
class Ride:
    """What became of one request; seconds on the clock of its run."""

    arrived_at: float
    began_at: float
    destination: str
    first_at: float | None = None
    ended_at: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class Recorded:
    """The workload of a tape, in one stage."""

    id = "recorded"
    stages = (Stage(name="tape"),)

    def __init__(self, arrivals: Iterable[Arrival]) -> None:
        self._arrivals = tuple(arrivals)

    def arrivals(self, stage: int, rng: np.random.Generator) -> tuple[Arrival, ...]:
        """See `Workload`."""
        return self._arrivals


def recorded_rides(tape: Tape) -> list[Ride]:
    """Of requests that were sent on, in the order in which they were."""
    decides = [rest for _, rest in tape.of("decide")]
    rides: dict[int, Ride] = {}
    for at, (number, lease) in tape.of("begin"):
        told, _, _, _, picked = decides[number]
        rides[lease] = Ride(arrived_at=told["arrived_at"], began_at=at, destination=picked)
    for at, (lease,) in tape.of("first"):
        rides[lease].first_at = at
    for at, (lease, counts) in tape.of("end"):
        ride = rides[lease]
        ride.ended_at = at
        ride.prompt_tokens = counts["prompt_tokens"] or 0
        ride.cached_tokens = counts["cached_tokens"] or 0
        ride.output_tokens = counts["completion_tokens"] or 0
    return list(rides.values())


def simulated_rides(tape: Tape, *, seed: int | None = None) -> list[Ride]:
    """The same requests, simulated; with the recorded router's seed if no other is given."""
    run = Simulation(scenario_of(tape), seed=tape.header.seed if seed is None else seed)
    run.run()
    return [_ride(course) for course in run.courses]


def _ride(course: Course) -> Ride:
    return Ride(
        arrived_at=course.sent_at,
        began_at=course.sent_at if course.decided_at is None else course.decided_at,
        destination=course.destination or course.outcome,
        first_at=course.first_token_at,
        ended_at=course.ended_at,
        prompt_tokens=course.arrival.prompt.tokens,
        cached_tokens=course.cached_tokens,
        output_tokens=course.output_tokens,
    )


def scenario_of(tape: Tape) -> Scenario:
    """The tape's pool, engines and requests."""
    document = parse_document(msgspec.json.encode(tape.header.document))
    profiles = {spec.id: tape.header.profiles[spec.speed_class] for spec in document.endpoints}
    return Scenario(
        document=document,
        profiles=profiles,
        workload=Recorded(_arrivals(tape)),
        policy=document.policy.name,
        surroundings=Surroundings(has_events=True, progress_seconds=0.1),
    )


def _arrivals(tape: Tape) -> list[Arrival]:
    prompts, rides = prompts_of(tape), recorded_rides(tape)
    begun = {number for _, (number, _) in tape.of("begin")}
    asked = [rest[0] for number, (_, rest) in enumerate(tape.of("decide")) if number in begun]
    start = min(ride.arrived_at for ride in rides) - QUIET_SECONDS
    return [
        Arrival(
            at=round(ride.arrived_at - start, 6),
            prompt=_prompt(told["parsed"], prompts, ride),
            output_tokens=ride.output_tokens,
            max_tokens=told["parsed"]["max_tokens"],
            tenant=told["tenant"],
        )
        for told, ride in zip(asked, rides, strict=True)
    ]


def _prompt(parsed: dict[str, Any], prompts: list[list[int]], ride: Ride) -> Prompt:
    """Prompts are counted by the engine; keys are the router's, one per block of the engine."""
    keys = prompts[parsed["block_keys"]]
    return Prompt(tuple(keys), ride.prompt_tokens, int(parsed["chunk_tokens"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one run, for comparison. Seconds, tokens per second, shares."""

    ttft_mean: float
    ttft_p50: float
    tpot_mean: float
    e2e_mean: float
    output_tokens_per_s: float
    hit_rate: float

    def errors(self, real: "Figures") -> dict[str, float]:
        """By how much of the real figure each of these is off."""
        return {name: getattr(self, name) / getattr(real, name) - 1 for name in self.__slots__}


def figures_of(rides: Iterable[Ride]) -> Figures:
    """Over answered requests."""
    done = [ride for ride in rides if ride.first_at is not None and ride.ended_at is not None]
    ttft = np.array([ride.first_at - ride.arrived_at for ride in done if ride.first_at])
    e2e = np.array([ride.ended_at - ride.arrived_at for ride in done if ride.ended_at])
    output = np.array([ride.output_tokens for ride in done])
    length = max(ride.ended_at or 0.0 for ride in done) - min(ride.arrived_at for ride in done)
    prompts = sum(ride.prompt_tokens for ride in done)
    return Figures(
        ttft_mean=float(ttft.mean()),
        ttft_p50=float(np.median(ttft)),
        tpot_mean=float(((e2e - ttft) / np.maximum(output - 1, 1)).mean()),
        e2e_mean=float(e2e.mean()),
        output_tokens_per_s=float(output.sum()) / length,
        hit_rate=sum(ride.cached_tokens for ride in done) / prompts,
    )


def equal_share(left: list[Ride], right: list[Ride]) -> float:
    """Share of requests that went to the same endpoint in both runs."""
    same = sum(one.destination == two.destination for one, two in zip(left, right, strict=True))
    return same / len(left)


def event_lag(tape: Tape) -> float:
    """How much later than the fastest one nine of ten batches of cache events were applied, at
    most, seconds: what the machine added, since nothing else lies between."""
    ways = [at - rest[2]["batch"][0] for at, rest in tape.of("events") if rest[0] == "take"]
    return float(np.percentile(ways, 90)) - min(ways)
