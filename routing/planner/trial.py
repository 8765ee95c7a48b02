"""A placement under its traffic in the simulator: the router's own code, engines in virtual time.

A large pool is simulated as a smaller one of the same proportions, so that a plan takes a bounded
number of requests: engines, rate and shared beginnings shrink together, and results are scaled
back. Judged are the requests *sent* inside a window that begins after the pool has filled up; the
load goes on until each of them has ended or can no longer be good.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from routing.core.document import Admission, Role, Slo
from routing.planner.engines import Engine
from routing.planner.estimate import Estimate, estimate
from routing.planner.placement import Placement, Share
from routing.planner.problem import Demand
from routing.simulator.fleet import Fleet, Member, build_fleet
from routing.simulator.report.stage import Spread, is_good, spread_of
from routing.simulator.requests import Course, Stage
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.shared_prefix import SharedPrefix

POLICY = "consort"
MOST_ENGINES = 32
"""Engines of one simulation."""
FILLING = 1.2
"""Expected durations of an answer before the window begins."""
WINDOW = 0.5
"""The same, of the window."""
LEAST_REQUESTS = 150
"""In the window."""
LEAST_SECONDS = 10.0
QUANTUM = 4.0
"""Virtual seconds between two looks at `should_stop` and at what has ended."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the pool did, scaled to its full size. Simulated. Seconds, shares of 0 to 1."""

    rate_rps: float
    """At which it was simulated: the offered rate, or less where the pool does not keep that."""
    goodput_rps: float
    """Requests a second that were answered within both targets."""
    good_share: float
    """Of the simulated rate."""
    output_tokens_per_s: float
    ttft: Spread | None
    tpot: Spread | None
    utilisation: float
    """Share of engine time with work, from the window's start on."""
    prefix_hit_rate: float | None
    pair_share: float | None
    """Of answers whose prompt another engine computed."""
    requests: int
    """In the window, before scaling."""
    scale: float
    """Simulated part of the pool."""
    goodput_at_most_rps: float | None = None
    """What rates that were not tried may still give; `None` where nobody looked."""


class Cancelled(Exception):  # noqa: N818 - not an error: somebody asked for the end
    """`should_stop` said so."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What to simulate."""

    placement: Placement
    engines: Mapping[str, Engine]
    """By group."""
    demand: Demand


@dataclass(frozen=True, slots=True)
class _Plan:
    placement: Placement
    rate: float
    groups: int
    scale: float
    filling: float
    window: float


def simulate(
    trial: Trial,
    *,
    rate: float,
    seed: int,
    requests: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a placement at a rate with about `requests` requests. Raises Cancelled."""
    demand = at_rate(trial.demand, rate)
    plan = _plan(trial.placement, trial.engines, demand, requests=requests)
    run = Simulation(_scenario(plan, trial.engines, demand), seed=seed)
    _advance(run, plan.filling, should_stop)
    busy, began = _busy(run), plan.filling
    ends = began + plan.window
    _advance(run, ends, should_stop)
    window = [course for course in run.courses if began < course.sent_at <= ends]
    target = demand.target
    latest = ends + target.ttft_seconds + demand.traffic.output_tokens * target.tpot_seconds
    while run.clock.now < latest and any(course.ended_at is None for course in window):
        _advance(run, min(latest, run.clock.now + QUANTUM), should_stop)
    share = (_busy(run) - busy) / ((run.clock.now - began) * len(run.replicas))
    return _outcome(run, window, rate=rate, scale=plan.scale, utilisation=share)


def at_rate(demand: Demand, rate: float) -> Demand:
    """The demand at another rate."""
    traffic = msgspec.structs.replace(demand.traffic, rate_qps=rate)
    return msgspec.structs.replace(demand, traffic=traffic)


def _advance(run: Simulation, until: float, should_stop: Callable[[], bool]) -> None:
    while run.clock.now < until:
        if should_stop():
            raise Cancelled
        run.advance(min(until, run.clock.now + QUANTUM))


def _plan(
    placement: Placement, engines: Mapping[str, Engine], demand: Demand, *, requests: int
) -> _Plan:
    found = estimate(placement, engines, demand)
    answer = _answer_seconds(found, demand)
    filling = max(LEAST_SECONDS, FILLING * answer)
    window = max(LEAST_SECONDS, WINDOW * answer)
    wanted = requests / (demand.traffic.rate_qps * (filling + window + answer))
    count = sum(share.engines for share in placement)
    small = _shrunk(placement, min(1.0, wanted, MOST_ENGINES / count))
    # Rounding changes the proportions a little; the rate follows what the small pool can do.
    scale = _scale(small, placement, engines, demand, found)
    rate = demand.traffic.rate_qps * scale
    groups = max(1, round(demand.traffic.groups * scale)) if demand.traffic.groups else 0
    window = max(window, LEAST_REQUESTS / rate)
    return _Plan(small, rate, groups, scale, filling, window)


def _answer_seconds(found: Estimate, demand: Demand) -> float:
    target = demand.target
    ttft = found.ttft_seconds if found.ttft_seconds is not None else target.ttft_seconds
    tpot = found.tpot_seconds if found.tpot_seconds is not None else target.tpot_seconds
    return ttft + demand.traffic.output_tokens * tpot


def _shrunk(placement: Placement, scale: float) -> Placement:
    def part(count: int) -> int:
        return max(1, round(count * scale)) if count else 0

    if scale >= 1.0:
        return placement
    return tuple(
        Share(
            group=share.group,
            width=share.width,
            prefill=part(share.prefill),
            decode=part(share.decode),
            both=part(share.both),
        )
        for share in placement
    )


def _scale(
    small: Placement,
    placement: Placement,
    engines: Mapping[str, Engine],
    demand: Demand,
    found: Estimate,
) -> float:
    if small == placement:
        return 1.0
    by_count = sum(share.engines for share in small) / sum(share.engines for share in placement)
    traffic = demand.traffic
    groups = max(1, round(traffic.groups * by_count)) if traffic.groups else 0
    fewer = msgspec.structs.replace(demand, traffic=msgspec.structs.replace(traffic, groups=groups))
    bound = estimate(small, engines, fewer).capacity_rps
    return bound / found.capacity_rps if found.capacity_rps and bound else by_count


def _scenario(plan: _Plan, engines: Mapping[str, Engine], demand: Demand) -> Scenario:
    fleet = _fleet(plan.placement, engines, demand)
    traffic, target = demand.traffic, demand.target
    return Scenario(
        document=fleet.document,
        profiles=fleet.profiles,
        workload=SharedPrefix(
            id="planned",
            stages=(Stage(name="offered", rate_qps=plan.rate, seconds=1e9),),
            groups=plan.groups,
            prompts=0,
            system_tokens=traffic.shared_tokens if plan.groups else 0,
            question_tokens=traffic.prompt_tokens - (traffic.shared_tokens if plan.groups else 0),
            output_tokens=traffic.output_tokens,
        ),
        policy=POLICY,
        ttft_target_seconds=target.ttft_seconds,
        tpot_target_seconds=target.tpot_seconds,
    )


def _fleet(placement: Placement, engines: Mapping[str, Engine], demand: Demand) -> Fleet:
    roles: tuple[Role, ...] = ("prefill", "decode", "both")
    members = [
        Member(
            accelerator=engines[share.group].profile.accelerator,
            count=count,
            role=role,
            profile=engines[share.group].profile,
            prior=engines[share.group].prior,
            speed_class=share.group,
        )
        for share in placement
        for role in roles
        if (count := getattr(share, role))
    ]
    slo = Slo(ttft_seconds=demand.target.ttft_seconds, tpot_seconds=demand.target.tpot_seconds)
    # What a pool document of the control plane says unless somebody set more.
    return build_fleet(members, model=demand.model, slo=slo, admission=Admission())


def _busy(run: Simulation) -> float:
    spent = [replica.spent() for replica in run.replicas.values()]
    return sum(one.prefill + one.decode for one in spent)


def _outcome(
    run: Simulation, window: Sequence[Course], *, rate: float, scale: float, utilisation: float
) -> Outcome:
    answered = [course for course in window if course.outcome == "ok"]
    good = sum(is_good(course, run.scenario) for course in answered)
    prompts = sum(course.arrival.prompt.tokens for course in answered)
    sent = max(1, len(window))
    tokens = sum(course.output_tokens for course in answered)
    return Outcome(
        rate_rps=rate,
        goodput_rps=rate * good / sent,
        good_share=good / sent,
        output_tokens_per_s=rate * tokens / sent,
        ttft=spread_of([course.ttft for course in window]),
        tpot=spread_of([course.tpot for course in answered]),
        utilisation=min(1.0, utilisation),
        prefix_hit_rate=sum(course.cached_tokens for course in answered) / prompts
        if prompts
        else None,
        pair_share=sum(course.prefill is not None for course in answered) / len(answered)
        if answered
        else None,
        requests=len(window),
        scale=scale,
    )
