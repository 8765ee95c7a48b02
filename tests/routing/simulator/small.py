"""Small pools, loads and troubles, drawn at random or asked for, that are simulated in a moment."""

import dataclasses
from dataclasses import replace
from typing import Any

import msgspec
import xxhash
from hypothesis import strategies as st

from routing.core.document import Admission, Limits
from routing.simulator.fleet import Fleet, Member, build_fleet
from routing.simulator.profiles import load_profile
from routing.simulator.requests import Arrival, Prompt, Stage, prompt_of
from routing.simulator.scenario import Scenario, Surroundings, Trouble
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.shared_prefix import SharedPrefix, ladder

MODEL = "granite-4.1-8b"
H100, MI325X, GAUDI = "nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3"
POLICIES = ("random", "least-requests", "llm-d-weighted", "llm-d-precise", "dynamo", "consort")


def member(accelerator: str, count: int, *, kv_tokens: int | None = None, **options: Any) -> Member:
    """Replicas, if asked for with another cache than their class has."""
    profile = load_profile(accelerator, MODEL)
    if kv_tokens is None:
        return Member(accelerator=accelerator, count=count, **options)
    known = build_fleet([Member(accelerator=accelerator, count=1)], model=MODEL)
    return Member(
        accelerator=accelerator,
        count=count,
        profile=replace(profile, kv_tokens=kv_tokens),
        prior=known.document.speed_classes[accelerator],
        **options,
    )


def fleet_of(
    *members: Member, limits: Limits | None = None, admission: Admission | None = None, **more: Any
) -> Fleet:
    """A pool of them; `more` are fields of the document."""
    fleet = build_fleet(members, model=MODEL, admission=admission)
    document = msgspec.structs.replace(fleet.document, limits=limits or Limits(), **more)
    return replace(fleet, document=document)


class Listed:
    """A workload of given arrivals, in one stage."""

    id = "listed"
    stages = (Stage(name="all"),)

    def __init__(self, *arrivals: Arrival) -> None:
        self._arrivals = arrivals

    def arrivals(self, stage: int, rng: Any) -> tuple[Arrival, ...]:
        """See `Workload`."""
        return self._arrivals


def prompt(name: str, tokens: int = 640) -> Prompt:
    """Of ten blocks, if not asked for otherwise."""
    return prompt_of([(name, tokens)])


def arrival(name: str, *, at: float = 0.0, output: int = 20, **options: Any) -> Arrival:
    """A request whose prompt is all of that name."""
    tokens = options.pop("tokens", 640)
    return Arrival(at=at, prompt=prompt(name, tokens), output_tokens=output, **options)


def simulation(
    fleet: Fleet, *arrivals: Arrival, troubles: tuple[Trouble, ...] = (), **options: Any
) -> Simulation:
    """These requests on that fleet; `options` are of the surroundings, and `policy`."""
    policy = options.pop("policy", "consort")
    scenario = Scenario(
        document=fleet.document,
        profiles=fleet.profiles,
        speeds=fleet.speeds,
        workload=Listed(*arrivals),
        policy=policy,
        troubles=troubles,
        surroundings=Surroundings(**options),
    )
    return Simulation(scenario, seed=3)


def digest(run: Simulation) -> str:
    """Of everything that became of all requests."""
    courses = [
        {field.name: getattr(course, field.name) for field in dataclasses.fields(course)}
        for course in run.courses
    ]
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(courses, enc_hook=dataclasses.asdict))


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Of one class or of several, with pairs or without, with much memory or hardly any."""
    kv = draw(st.sampled_from([1_600, 4_000, None]))
    shape = draw(st.sampled_from(["one", "two", "mixed", "pairs"]))
    limits = Limits(
        attempts=draw(st.integers(1, 3)),
        first_token_timeout_seconds=draw(st.sampled_from([1.0, 4.0])),
        stall_timeout_seconds=draw(st.sampled_from([0.5, 3.0])),
        streams_continue=draw(st.booleans()),
    )
    admission = Admission(
        maximum_wait_seconds=draw(st.sampled_from([0.5, 3600.0])),
        queue_requests=draw(st.sampled_from([0, 6])),
        queue_seconds=2.0,
        evict_sheddable=draw(st.booleans()),
    )
    members = {
        "one": [member(H100, 1, kv_tokens=kv)],
        "two": [member(MI325X, 2, kv_tokens=kv, max_sequences=4)],
        "mixed": [member(H100, 1, kv_tokens=kv), member(GAUDI, 2, speed=0.5)],
        "pairs": [
            member(H100, 2, kv_tokens=kv, role="prefill"),
            member(MI325X, 2, kv_tokens=kv, role="decode"),
        ],
    }[shape]
    return fleet_of(*members, limits=limits, admission=admission)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Some seconds of traffic in which almost anything may happen."""
    fleet = draw(fleets())
    names = [spec.id for spec in fleet.document.endpoints]
    kinds = st.sampled_from(["die", "start", "hang", "slow", "lose-events", "restart-router"])
    troubles = st.lists(
        st.builds(
            Trouble,
            at=st.floats(0.0, 6.0),
            endpoint=st.sampled_from(names),
            kind=kinds,
            speed=st.sampled_from([0.2, 1.0]),
        ),
        max_size=4,
    )
    rate = draw(st.sampled_from([4.0, 30.0]))
    return Scenario(
        document=fleet.document,
        profiles=fleet.profiles,
        speeds=fleet.speeds,
        workload=SharedPrefix(
            id="small",
            stages=ladder((rate, 2.0), (rate / 2, 1.0)),
            groups=draw(st.sampled_from([0, 3])),
            prompts=draw(st.sampled_from([0, 2])),
            system_tokens=draw(st.sampled_from([100, 500])),
            question_tokens=draw(st.sampled_from([50, 450])),
            output_tokens=draw(st.sampled_from([1, 30, 200])),
            output_spread=0.4,
        ),
        policy=draw(st.sampled_from(POLICIES)),
        troubles=tuple(draw(troubles)),
        surroundings=Surroundings(
            has_events=draw(st.booleans()),
            events_can_replay=draw(st.booleans()),
            scrape_delay_seconds=draw(st.sampled_from([0.0, 0.3])),
            router_seconds_per_request=draw(st.sampled_from([0.0, 0.05])),
            timeout_seconds=draw(st.sampled_from([1.0, 8.0])),
        ),
    )
