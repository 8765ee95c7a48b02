"""`consort calibrate`: the coefficients of one engine, from published stages of its own pools."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from controlplane.cli import files, output
from controlplane.cli.commands.base import Result, local
from controlplane.cli.errors import INVALID, USAGE, CliError
from controlplane.cli.progress import Progress

if TYPE_CHECKING:
    from routing.simulator.calibration.fit import Fit, Target
    from routing.simulator.published.tables import Table

DEFAULT = ("mfu", "step_seconds", "step_seconds_per_sequence", "step_seconds_per_context_token")
MOST_PER_COEFFICIENT = 20
"""Evaluations of a search, about: three steps, two passes, some of them further than one step."""


def add(commands: Any) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "calibrate",
        help="fit an engine's coefficients on published results",
        description="Simulates published stages of pools of one accelerator class behind a Service"
        " and searches the factors on the packaged profile that bring them closest. Results that"
        " judge the simulator are refused.",
    )
    parser.add_argument("accelerator", help="as in profiles.yaml, for example amd-mi325x")
    parser.add_argument("model")
    parser.add_argument("--result", action="append", default=[], help="id of a published result;"
                        " without it all that may be fitted on")  # fmt: skip
    parser.add_argument("--rate", action="append", default=[], type=float,
                        help="only stages of this rate")  # fmt: skip
    parser.add_argument("--coefficient", action="append", default=[], help="instead of the usual")
    parser.add_argument("--replicas", type=int, help="so many stand for the whole pool: faster")
    parser.add_argument("--out", type=Path, help="file for the fit, JSON")
    local(parser, calibrate)


def calibrate(flags: argparse.Namespace) -> Result:
    """Search, and say what was found and how far each stage is."""
    import msgspec

    from routing.simulator.calibration.fit import CalibrationError
    from routing.simulator.calibration.fit import calibrate as fitted
    from routing.simulator.profiles import ProfileError
    from routing.simulator.published.tables import PublishedError

    if flags.out is not None:
        files.prepare(flags.out)
    try:
        target = _target(flags)
        most = MOST_PER_COEFFICIENT * len(target.coefficients)
        with Progress() as progress:
            found = fitted(
                target,
                progress=lambda count, loss: progress(min(0.99, count / most), f"loss {loss:.3f}"),
            )
    except (CalibrationError, ProfileError, PublishedError) as error:
        raise CliError(str(error), code=INVALID) from error
    if flags.out is not None:
        files.write_whole(flags.out, output.report(found))
    return Result(data=msgspec.to_builtins(found), lines=_table(found), notes=_notes(found))


def _target(flags: argparse.Namespace) -> "Target":
    from routing.simulator.calibration.coefficients import Coefficient
    from routing.simulator.calibration.fit import Target

    known = get_args(Coefficient)
    for name in flags.coefficient:
        if name not in known:
            hint = f"Allowed: {', '.join(known)}."
            raise CliError(f"No coefficient is called '{name}'.", code=USAGE, hint=hint)
    tables = _tables(flags)
    if not tables:
        raise CliError(
            f"No published result of a pool of {flags.accelerator} with {flags.model} may be"
            " fitted on.",
            code=INVALID,
        )
    return Target(
        accelerator=flags.accelerator,
        model=flags.model,
        tables=tables,
        coefficients=tuple(name for name in known if name in (flags.coefficient or DEFAULT)),
        rates={table.id: tuple(flags.rate) for table in tables} if flags.rate else {},
        replicas=flags.replicas,
    )


def _tables(flags: argparse.Namespace) -> "tuple[Table, ...]":
    """Those that are named, or all of this class alone behind a Service."""
    from routing.simulator.published.tables import members, table, tables

    if flags.result:
        return tuple(table(result, "service") for result in flags.result)
    return tuple(
        one
        for one in tables()
        if one.use == "fit"
        and one.router == "service"
        and one.model == flags.model
        and {member.accelerator for member in members(one.fleet)} == {flags.accelerator}
    )


def _table(fit: "Fit") -> str:
    factors = output.table(("coefficient", "factor"), list(fit.factors.items()))
    rows = [
        (error.rate_qps, error.quantity, error.published, error.simulated,
         error.simulated / error.published)
        for error in fit.errors
    ]  # fmt: skip
    head = ("requests/s", "quantity", "published", "simulated", "ratio")
    return f"{factors}\n\n{output.table(head, rows)}"


def _notes(fit: "Fit") -> tuple[str, ...]:
    return (
        f"Fitted on {', '.join(fit.results)}: loss {fit.loss:.3f} after {fit.evaluations} runs;"
        " 0.1 is about 10 %.",
    )
