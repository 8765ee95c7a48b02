"""A heat: one case under one policy with one seed.

Arrivals depend on the case and the seed only, so that policies meet the same requests (common
random numbers), and a difference between policies is one of pairs.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from routing.core.document import Admission, ConsortParameters, Policy, PolicyName, Slo
from routing.simulator.fleet import PATIENCE_SECONDS, build_fleet
from routing.simulator.race.cases import case_of
from routing.simulator.report.prices import list_currency
from routing.simulator.report.stage import StageReport, stage_reports
from routing.simulator.scenario import Scenario, Surroundings
from routing.simulator.simulation import Simulation

POLICIES: tuple[str, ...] = tuple(name for name in get_args(PolicyName) if name != "weighted")
"""Everybody who can race; `weighted` is the frame behind llm-d's."""


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """What a run depends on, but for the code."""

    case: str
    policy: str
    seed: int
    is_quick: bool = False
    knows_slo: bool = True
    """The pool document states the targets that goodput is judged by."""
    has_queue: bool = True
    """Requests may wait in the router under consort. Its peers are published without, so they race
    without; `False` shows the policy alone."""
    parameters: dict[str, float] = {}
    """Of consort's policy; peers have none."""


class HeatReport(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the measured stages."""

    heat: Heat
    stages: tuple[StageReport, ...]


WAITING_ROOM = Admission(
    maximum_wait_seconds=PATIENCE_SECONDS, queue_requests=100_000, queue_seconds=PATIENCE_SECONDS
)
"""As long as clients are patient: nobody is refused, so that every policy answers the same."""


def parameters_of(given: Mapping[str, float]) -> ConsortParameters:
    """Checked. Raises msgspec.ValidationError naming what is wrong."""
    return msgspec.convert(dict(given), ConsortParameters)


def run_heat(heat: Heat) -> HeatReport:
    """Simulate one. Raises KeyError for a case that nobody knows."""
    run = Simulation(scenario_of(heat), seed=heat.seed)
    run.run()
    measured = [report for report in stage_reports(run) if not report.is_warm_up]
    return HeatReport(heat=heat, stages=tuple(measured))


def scenario_of(heat: Heat) -> Scenario:
    """The scenario of a heat."""
    case = case_of(heat.case)
    fleet, workload = case.its_fleet, case.its_workload(is_quick=heat.is_quick)
    slo = Slo(ttft_seconds=case.ttft_seconds, tpot_seconds=case.tpot_seconds)
    built = build_fleet(
        fleet.members,
        model=fleet.model,
        block_tokens=workload.block_tokens,
        policy=Policy(parameters=parameters_of(heat.parameters)),
        slo=slo if heat.knows_slo else None,
        admission=WAITING_ROOM if heat.has_queue and heat.policy == "consort" else None,
    ).in_currency(list_currency())
    return Scenario(
        document=built.document,
        profiles=built.profiles,
        workload=workload,
        policy=heat.policy,
        speeds=built.speeds,
        surroundings=Surroundings(has_events=True),
        troubles=fleet.troubles,
        ttft_target_seconds=case.ttft_seconds,
        tpot_target_seconds=case.tpot_seconds,
    )


def chosen_policies(names: Sequence[str]) -> list[str]:
    """These, all without any. Raises ValueError naming what is known."""
    for name in names:
        if name not in POLICIES:
            raise ValueError(f"No policy '{name}'. Known are: {', '.join(POLICIES)}.")
    return list(names or POLICIES)
