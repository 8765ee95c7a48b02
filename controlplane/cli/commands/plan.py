"""`consort plan`: which accelerators should prefill, decode or do both, from a fleet file.

No server is asked. The planner is loaded when the command runs, so that others start as fast as
without it.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.cli import files, output
from controlplane.cli.commands.base import Result, local
from controlplane.cli.errors import INVALID, USAGE, CliError
from controlplane.cli.progress import Progress

if TYPE_CHECKING:
    from routing.planner.advice import Option, Plan, PoolAdvice
    from routing.planner.words import Language

HEAD = ("pool", "option", "roles", "good/s", "TTFT p90 s", "TPOT p90 ms", "busy", "cost/M out",
        "W at most")  # fmt: skip
LEAST_REQUESTS, MOST_REQUESTS = 100, 1_000_000
IMPOSSIBLE = 1
"""Exit code when a pool cannot be served."""


def add(commands: Any) -> None:
    """Declare it."""
    parser = commands.add_parser(
        "plan",
        help="role split of a fleet, from a file with nodes, models and traffic",
        description="Enumerates placements, bounds them with a queueing estimate and simulates the"
        " best few with the router's own code. The file is described in docs/planning.md.",
    )
    parser.add_argument("file", help="fleet, YAML or JSON; - reads what is piped in")
    parser.add_argument("--seed", type=int, default=1, help="equal seeds give equal plans")
    parser.add_argument("--requests", type=int, help="work: simulated requests, 16,000 without it")
    parser.add_argument("--lang", choices=("en", "ko"), default="en", help="of the reasons")
    parser.add_argument("--out", type=Path, help="plan as JSON, written at the end")
    local(parser, plan)


def plan(flags: argparse.Namespace) -> Result:
    """Plan the fleet of a file."""
    import msgspec

    from routing.planner.problem import ProblemError, parse_problem
    from routing.planner.search import REQUESTS, advise

    requests = REQUESTS if flags.requests is None else flags.requests
    if not LEAST_REQUESTS <= requests <= MOST_REQUESTS:
        raise CliError(f"--requests is {LEAST_REQUESTS} to {MOST_REQUESTS}.", code=USAGE)
    if flags.seed < 0:
        raise CliError("--seed is 0 or more.", code=USAGE)
    try:
        problem = parse_problem(_values(flags.file))
    except ProblemError as error:
        raise CliError(f"{flags.file}: {error}", code=INVALID) from error
    if flags.out is not None:
        files.prepare(flags.out)
    with Progress() as progress:
        found = advise(
            problem,
            seed=flags.seed,
            requests=requests,
            progress=lambda done, total: progress(done / max(1, total), "simulations"),
        )
    notes = _notes(found, flags.lang)
    if flags.out is not None:
        files.write_whole(flags.out, output.report(found))
        notes += (f"Written: {flags.out}",)
    failed = any(pool.verdict == "impossible" for pool in found.pools)
    return Result(
        data=msgspec.to_builtins(found),
        lines=_lines(found, flags.lang),
        notes=notes,
        code=IMPOSSIBLE if failed else 0,
    )


def _values(name: str) -> dict[str, object]:
    import yaml

    try:
        values = yaml.safe_load(files.read(name))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A date that no calendar has is a ValueError, too deep a nesting a RecursionError.
        raise CliError(f"{name} is no YAML: {error}", code=INVALID) from error
    if not isinstance(values, dict):
        raise CliError(
            f"{name} has no members.", code=INVALID, hint="A fleet file has groups and demands."
        )
    return values


def _notes(plan: "Plan", language: "Language") -> tuple[str, ...]:
    error = plan.error
    shares = f"{100 * error.throughput:.0f} % of throughput, {100 * error.tpot:.0f} % of TPOT"
    rate = f"{100 * (error.rate_resolution or 0):.0f} %"
    if language == "ko":
        return (
            f"모든 수치는 시뮬레이션 추정입니다. 모형 오차(중앙값): {shares}.",
            f"조언이 달라질 수 있는 곳에서는 지킬 수 있는 최대 요청률을 {rate} 단위까지 찾습니다.",
        )
    return (
        f"All figures are simulated. Model error (medians): {shares}.",
        f"Where advice depends on it, the largest rate that roles keep is searched to {rate}.",
    )


def _lines(plan: "Plan", language: "Language") -> str:
    from routing.planner.words import sentence

    parts = [output.table(HEAD, [row for pool in plan.pools for row in _rows(pool)])]
    for pool in plan.pools:
        told = [f"  {sentence(reason, language)}" for reason in pool.reasons]
        refused = [f"  {one.group}: {sentence(one.reason, language)}" for one in pool.refused]
        parts.append("\n".join([f"{pool.pool}: {pool.verdict}", *told, *refused]))
    return "\n\n".join(parts)


def _rows(pool: "PoolAdvice") -> Iterator[tuple[object, ...]]:
    chosen = () if pool.chosen is None else (pool.chosen,)
    for option in (*chosen, *pool.alternatives):
        outcome = option.outcome
        mark = "* " if option is pool.chosen else "  "
        ttft = outcome.ttft if outcome is not None else None
        tpot = outcome.tpot if outcome is not None else None
        yield (
            pool.pool,
            f"{mark}{option.kind}",
            _roles(option),
            None if outcome is None else round(outcome.goodput_rps, 2),
            None if ttft is None else round(ttft.p90, 3),
            None if tpot is None else round(1000 * tpot.p90, 1),
            None if outcome is None else round(outcome.utilisation, 2),
            option.cost_per_million_output,
            None if option.watts_at_most is None else round(option.watts_at_most),
        )


def _roles(option: "Option") -> str:
    """As `h100 2P 2D, gaudi3 8B`."""
    parts = []
    for share in option.placement:
        counts = ((share.prefill, "P"), (share.decode, "D"), (share.both, "B"))
        told = " ".join(f"{count}{letter}" for count, letter in counts if count)
        width = f" (TP{share.width})" if share.width > 1 else ""
        parts.append(f"{share.group} {told}{width}")
    return ", ".join(parts)
