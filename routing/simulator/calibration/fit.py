"""Fits of one engine on published stages of pools that have nothing else.

Pools behind a Service only: a replica's share of the traffic is then known, and no router's
behaviour is fitted along. Each evaluation simulates the chosen stages. Factors are held near 1,
where the roofline or the class's other model has them, by a small price, so that what the stages do
not tell stays there.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from routing.simulator.calibration.coefficients import Coefficient, scaled
from routing.simulator.calibration.errors import Error, errors_of, loss_of
from routing.simulator.calibration.search import STEPS, descend
from routing.simulator.profiles import Profile, load_unfitted
from routing.simulator.published.running import scenario_of
from routing.simulator.published.tables import Table
from routing.simulator.report.stage import stage_reports
from routing.simulator.simulation import Simulation

SEED = 1
PRICE_OF_DISTANCE = 0.02
"""Loss per unit of mean absolute logarithm of the factors."""


class CalibrationError(Exception):
    """A table must not be fitted on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An engine, and what to fit it on."""

    accelerator: str
    model: str
    tables: tuple[Table, ...]
    """All of `use: fit`."""
    coefficients: tuple[Coefficient, ...]
    rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Stages by result; every one when absent."""
    replicas: int | None = None
    """How many stand for the whole pool; `None` simulates all. Requests per second of the stage
    depend on the slowest to drain, so they count only when all are simulated."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and from what."""

    accelerator: str
    model: str
    results: tuple[str, ...]
    factors: dict[str, float]
    """On the profile that the fit began with."""
    loss: float
    evaluations: int
    errors: tuple[Error, ...]
    """At the end, over the stages that were used."""


Progress = Callable[[int, float], None]
"""Told after each evaluation: how many there were, and the lowest loss."""


def calibrate(
    target: Target,
    *,
    start: Profile | None = None,
    steps: Sequence[float] = STEPS,
    progress: Progress = lambda evaluations, loss: None,
) -> Fit:
    """Search from `start`, by default what is known without fits.

    Raises CalibrationError for a table that judges.
    """
    for one in target.tables:
        must_be_fittable(one)
    profile = start or load_unfitted(target.accelerator, target.model)
    seen: list[float] = []

    def loss(factors: Mapping[Coefficient, float]) -> float:
        distance = sum(abs(math.log(factor)) for factor in factors.values()) / len(factors)
        found = _errors(target, scaled(profile, factors))
        seen.append(loss_of(found) + PRICE_OF_DISTANCE * distance)
        progress(len(seen), min(seen))
        return seen[-1]

    factors, lowest = descend(loss, target.coefficients, steps=steps)
    return Fit(
        accelerator=target.accelerator,
        model=target.model,
        results=tuple(one.id for one in target.tables),
        factors={str(name): factor for name, factor in factors.items()},
        loss=lowest,
        evaluations=len(seen),
        errors=tuple(_errors(target, scaled(profile, factors))),
    )


def _errors(target: Target, profile: Profile) -> list[Error]:
    return [error for one in target.tables for error in compare(one, profile, target)]


def compare(one: Table, profile: Profile, target: Target) -> list[Error]:
    """Simulate stages of a run of one class with a profile; its warm-up is run, not compared."""
    rates = target.rates.get(one.id)
    scenario = scenario_of(
        one,
        profiles={profile.accelerator: profile},
        rates=rates,
        replicas=target.replicas,
    )
    run = Simulation(scenario, seed=SEED)
    run.run()
    reports = [report for report in stage_reports(run) if not report.is_warm_up]
    rows = [
        row
        for row, stage in zip(one.rows, one.stages, strict=True)
        if not stage.is_warm_up and (rates is None or row.rate_qps in rates)
    ]
    found = errors_of(rows, reports)
    if target.replicas is None:
        return list(found)
    return [error for error in found if error.quantity != "requests_per_s"]


def must_be_fittable(one: Table) -> None:
    """Raises CalibrationError for a table that judges."""
    if one.use != "fit":
        raise CalibrationError(
            f"'{one.id}' judges the simulator, so nothing may be fitted on it. "
            "Name results of `use: fit`."
        )
