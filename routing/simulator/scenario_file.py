"""Scenario files: YAML that states a fleet, its traffic, policies and troubles.

A refusal names the line, what is wrong and what is allowed. What cannot be simulated is refused
here and not in the middle of a run: a model that does not fit, roles that cannot answer, prompts
that no endpoint takes. The fields are in `scenario_specs`, with examples in docs/simulation.md.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from routing.core.document import DocumentError, Policy, Slo
from routing.core.refusals import refusal
from routing.llmd import yaml_text
from routing.simulator import scenario_fleet
from routing.simulator.fleet import Fleet
from routing.simulator.scenario import Scenario, Trouble
from routing.simulator.scenario_specs import ScenarioSpec, surroundings_of
from routing.simulator.study import Run, Study
from routing.simulator.workloads.building import Built, build, no_files
from routing.simulator.workloads.open_loop import Traffic
from routing.simulator.workloads.specs import Read
from routing.simulator.yaml_lines import line_of, lines_of


class ScenarioError(Exception):
    """A scenario was refused."""

    def __init__(self, message: str, *, line: int | None, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message if line is None else f"Line {line}: {message}")
        self.line = line
        self.allowed = allowed


def read_study(raw: bytes, *, read: Read = no_files) -> Study:
    """The runs of a scenario file; `read` opens the files that it names. Raises ScenarioError."""
    try:
        tree = yaml_text.load(raw)
    except DocumentError as error:
        raise ScenarioError(error.message, line=None, allowed=error.allowed) from error
    lines = lines_of(raw)
    try:
        return study_of(tree, read=read)
    except DocumentError as error:
        place = error.pointer.removeprefix("/") or "the file"
        message = f"{place}: {error.message}"
        line = line_of(error.pointer, lines)
        raise ScenarioError(message, line=line, allowed=error.allowed) from error


def study_of(tree: Any, *, read: Read = no_files) -> Study:
    """The same of what a YAML text says. Raises DocumentError with a pointer to what is wrong."""
    if not isinstance(tree, dict):
        raise DocumentError("", "A scenario is a table.", _names())
    stated = dict(tree)
    known = scenario_fleet.known(stated.pop("fleet")) if _names_fleet(stated) else None
    spec = _spec(stated)
    built = build(spec.workload, read=read, pointer="/workload")
    policy, slo = spec.policy, Slo(**msgspec.structs.asdict(spec.slo))
    source = scenario_fleet.Source(
        spec=spec, known=known, block_tokens=built.workload.block_tokens, slo=slo
    )
    fleet, notes = scenario_fleet.fleet_of(source, read)
    scenario_fleet.check(fleet, "/fleet" if spec.pool is None else "/pool")
    _check_lengths(fleet, built.workload)
    troubles = _troubles(spec, fleet) + (known.troubles if known else ())
    runs = _runs(spec, policy, fleet, built, troubles)
    return Study(
        name=spec.name,
        model=fleet.document.models[0].name,
        workload=built.workload.id,
        runs=tuple(runs),
        notes=notes + built.notes,
    )


def _names_fleet(tree: dict[str, Any]) -> bool:
    return isinstance(tree.get("fleet"), str)


def _names() -> tuple[str, ...]:
    return ScenarioSpec.__struct_fields__


def _spec(tree: dict[str, Any]) -> ScenarioSpec:
    try:
        return msgspec.convert(tree, ScenarioSpec)
    except msgspec.ValidationError as error:
        raise refusal(str(error), msgspec.json.schema(ScenarioSpec)) from error


def _runs(
    spec: ScenarioSpec,
    policy: Policy,
    fleet: Fleet,
    built: Built,
    troubles: tuple[Trouble, ...],
) -> Iterator[Run]:
    surroundings = surroundings_of(spec.surroundings)
    for name in spec.policies or (policy.name,):
        document = msgspec.structs.replace(
            fleet.document, policy=msgspec.structs.replace(policy, name=name)
        )
        scenario = Scenario(
            document=document,
            profiles=fleet.profiles,
            workload=built.workload,
            policy=name,
            speeds=fleet.speeds,
            surroundings=surroundings,
            troubles=troubles,
            ttft_target_seconds=spec.slo.ttft_seconds,
            tpot_target_seconds=spec.slo.tpot_seconds,
        )
        for seed in spec.seeds:
            yield Run(policy=name, seed=seed, scenario=scenario)


def _troubles(spec: ScenarioSpec, fleet: Fleet) -> tuple[Trouble, ...]:
    known = tuple(fleet.profiles)
    for place, trouble in enumerate(spec.troubles):
        if trouble.endpoint not in fleet.profiles:
            raise DocumentError(
                f"/troubles/{place}/endpoint",
                f"There is no endpoint '{trouble.endpoint}' in the fleet.",
                known,
            )
    return tuple(Trouble(**msgspec.structs.asdict(trouble)) for trouble in spec.troubles)


def _check_lengths(fleet: Fleet, workload: Traffic) -> None:
    """The longest request fits into the context window, and into the cache of what answers it."""
    longest = workload.longest_tokens
    window = fleet.document.models[0].max_model_len
    hint = "Shorten it; a trace's prompts are cut by 'longest_tokens'."
    if window is not None and longest > window:
        raise DocumentError(
            "/workload",
            f"Its longest request has {longest} tokens and the model takes {window}. {hint}",
        )
    answering = [spec.id for spec in fleet.document.endpoints if spec.role != "prefill"]
    most = max(fleet.profiles[name].kv_tokens for name in answering)
    if longest > most:
        raise DocumentError(
            "/workload",
            f"Its longest request has {longest} tokens and the largest KV cache holds {most}."
            f" {hint}",
        )
