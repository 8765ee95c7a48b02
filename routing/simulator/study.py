"""A study: one fleet and one traffic under several policies and seeds, run one after the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import msgspec

from routing.core.document import PolicyName
from routing.simulator.notes import Note
from routing.simulator.notes import told as told_note
from routing.simulator.report.stage import StageReport, stage_reports
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation

Told = Callable[[float, str], None]
"""Told of the share that is done and what runs; it ends the study by raising."""


class UnknownPolicyError(Exception):
    """No policy has this name; `allowed` are those that there are."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No policy is called '{name}'.")
        self.allowed: tuple[str, ...] = get_args(PolicyName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One simulation of a study."""

    policy: str
    seed: int
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Every policy with every seed, in that order."""

    name: str
    model: str
    workload: str
    runs: tuple[Run, ...]
    notes: tuple[Note, ...]


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run."""

    policy: str
    seed: int
    stages: tuple[StageReport, ...]


class StudyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Of all runs. Equal studies give equal reports."""

    name: str
    model: str
    workload: str
    fleet: dict[str, int]
    """Endpoints of each speed class."""
    ttft_target_seconds: float
    tpot_target_seconds: float
    notes: tuple[str, ...]
    runs: tuple[RunReport, ...]
    kind: Literal["simulated"] = "simulated"


def with_policies(study: Study, names: tuple[str, ...]) -> Study:
    """The same study of other policies. Raises UnknownPolicyError."""
    for name in names:
        if name not in get_args(PolicyName):
            raise UnknownPolicyError(name)
    seeds = [run for run in study.runs if run.policy == study.runs[0].policy]
    runs = tuple(_of_policy(run, name) for name in names for run in seeds)
    return replace(study, runs=runs)


def with_seeds(study: Study, seeds: tuple[int, ...]) -> Study:
    """The same study with other seeds."""
    policies = [run for run in study.runs if run.seed == study.runs[0].seed]
    runs = tuple(replace(run, seed=seed) for run in policies for seed in seeds)
    return replace(study, runs=runs)


def _of_policy(run: Run, name: Any) -> Run:
    document = run.scenario.document
    policy = msgspec.structs.replace(document.policy, name=name)
    scenario = replace(
        run.scenario, policy=name, document=msgspec.structs.replace(document, policy=policy)
    )
    return replace(run, policy=name, scenario=scenario)


def carry_out(study: Study, *, told: Told = lambda share, what: None) -> StudyReport:
    """Run everything and report."""
    reports = []
    for number, run in enumerate(study.runs):
        simulation = Simulation(run.scenario, seed=run.seed)

        def tell(number: int = number, run: Run = run, at: Simulation = simulation) -> bool:
            share = (number + share_done(at)) / len(study.runs)
            told(share, f"{run.policy}, seed {run.seed}")
            return False

        simulation.run(should_stop=tell)
        stages = tuple(stage_reports(simulation))
        reports.append(RunReport(policy=run.policy, seed=run.seed, stages=stages))
    told(1.0, "")
    first = study.runs[0].scenario
    return StudyReport(
        name=study.name,
        model=study.model,
        workload=study.workload,
        fleet=_classes(first),
        ttft_target_seconds=first.ttft_target_seconds,
        tpot_target_seconds=first.tpot_target_seconds,
        notes=tuple(told_note(note, "en") for note in study.notes),
        runs=tuple(reports),
    )


def share_done(run: Simulation) -> float:
    """About how much of a run is over, 0 to 1: stages, and what of a stage's sending time."""
    stages = run.scenario.workload.stages
    if run.is_over:
        return 1.0
    seconds = stages[run.stage].seconds
    passed = run.clock.now - run.stage_started_at[-1]
    part = min(1.0, passed / seconds) if seconds else 0.0
    return (run.stage + part) / len(stages)


def _classes(scenario: Scenario) -> dict[str, int]:
    counts: dict[str, int] = {}
    for spec in scenario.document.endpoints:
        counts[spec.speed_class] = counts.get(spec.speed_class, 0) + 1
    return counts
