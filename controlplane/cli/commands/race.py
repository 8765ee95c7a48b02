"""`consort race`: policies against each other in virtual time, judged."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from controlplane.cli import files, output
from controlplane.cli.commands.base import Result, local
from controlplane.cli.errors import USAGE, CliError
from controlplane.cli.progress import Progress

if TYPE_CHECKING:
    from routing.simulator.race.heat import Heat
    from routing.simulator.race.outcome import RaceReport
    from routing.simulator.race.standings import Row

FOLDER = Path("var/bench")
MOST_SEEDS = 20
MOST_PROCESSES = 64
MISSED = 1
"""Exit code when consort does not do what is demanded."""


def add(commands: Any) -> None:
    """Declare `race`."""
    parser = commands.add_parser(
        "race",
        help="policies against each other in virtual time",
        description="Every policy on every case, with the same arrivals, and what the design "
        "demands of consort. Ends with 1 when a demand is missed, and a whole race also when one "
        "could not be judged.",
    )
    parser.add_argument("--rows", default="", help="cases as workload@fleet, by comma; or all")
    parser.add_argument("--policies", default="", help="by comma; or all")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (1 to 20)")
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=NUMBER",
                        help="of consort's policy")  # fmt: skip
    parser.add_argument("--without-slo", action="store_true",
                        help="the pool does not state the targets that goodput has")  # fmt: skip
    parser.add_argument("--without-queue", action="store_true",
                        help="nobody waits in the router, under consort neither")  # fmt: skip
    parser.add_argument("--splits", action="store_true",
                        help="also what splits of roles give (part of a whole race)")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="short stages: shows that all runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of race.json and the rest")
    parser.add_argument("--list", action="store_true", help="name the cases and policies")
    local(parser, run)


def run(flags: argparse.Namespace) -> Result:
    """Run what is missing, write `race.json`, judge."""
    # The simulator brings numpy along; help does without it.
    from controlplane.cli import racing
    from routing.simulator.race.cases import CASES
    from routing.simulator.race.heat import POLICIES
    from routing.simulator.race.outcome import outcome_of

    if flags.list:
        known = {"rows": list(CASES), "policies": list(POLICIES)}
        return Result(data=known, lines="\n".join([*CASES, "", *POLICIES]))
    heats = _heats(flags)
    shelf = racing.Shelf(flags.out / "race")
    with Progress() as shown:
        reports = racing.race(
            heats,
            shelf=shelf,
            processes=flags.processes,
            progress=lambda done: shown(done / len(heats), f"{done} of {len(heats)} runs"),
        )
    report = outcome_of(reports, is_quick=flags.quick)
    _write(flags.out, report)
    return Result(
        data=msgspec.to_builtins(report),
        lines="\n\n".join([*map(_table, report.rows), *_splits(report), _judged(report)]),
        notes=(
            *_scope(flags, report),
            f"Written: race.json, race.html and race.ko.html in {flags.out}.",
        ),
        code=MISSED if is_missed(report, is_whole=_is_whole(flags)) else 0,
    )


def _is_whole(flags: argparse.Namespace) -> bool:
    """Every policy on every case, long enough to judge."""
    return not (flags.quick or flags.rows or flags.policies)


def is_missed(report: "RaceReport", *, is_whole: bool) -> bool:
    """A whole race misses what it could not judge, too, but for rows that nobody served."""
    return any(
        verdict.is_met is False or (is_whole and verdict.why_open in {"not-run", "peers-not-run"})
        for verdict in report.verdicts
    )


def _scope(flags: argparse.Namespace, report: "RaceReport") -> tuple[str, ...]:
    """What this race says nothing about."""
    if flags.quick:
        return ("A quick race judges nothing: it shows that everything runs.",)
    left = sum(verdict.is_met is None for verdict in report.verdicts)
    if not left:
        return ()
    part = "" if _is_whole(flags) else "This was a part of the race: "
    return (f"{part}{left} of {len(report.verdicts)} demands were not judged; they are not met.",)


def _write(folder: Path, report: "RaceReport") -> None:
    from routing.simulator.race.page import race_page
    from routing.simulator.report.html import html_of

    files.write_whole(folder / "race.json", report.as_json())
    files.write_whole(folder / "race.html", html_of(race_page(report)).encode())
    files.write_whole(folder / "race.ko.html", html_of(race_page(report, language="ko")).encode())


def _heats(flags: argparse.Namespace) -> list["Heat"]:
    from routing.simulator.race.cases import SPLIT_CASES, chosen
    from routing.simulator.race.heat import Heat, chosen_policies, parameters_of

    if not 1 <= flags.seeds <= MOST_SEEDS:
        raise CliError(f"--seeds is 1 to {MOST_SEEDS}.", code=USAGE)
    if not 1 <= flags.processes <= MOST_PROCESSES:
        raise CliError(f"--processes is 1 to {MOST_PROCESSES}.", code=USAGE)
    try:
        cases = chosen(_names(flags.rows))
        policies = chosen_policies(_names(flags.policies))
        parameters = dict(map(_parameter, flags.parameter))
        parameters_of(parameters)
    except (ValueError, msgspec.ValidationError) as error:
        raise CliError(str(error), code=USAGE) from error
    pairs = [(case.id, policy) for case in cases for policy in policies]
    if flags.splits or not (flags.rows or flags.policies):
        pairs += [(name, "consort") for name in SPLIT_CASES]
    return [
        Heat(
            case=case,
            policy=policy,
            seed=seed,
            is_quick=flags.quick,
            knows_slo=not flags.without_slo,
            has_queue=not flags.without_queue,
            parameters=parameters if policy == "consort" else {},
        )
        for case, policy in pairs
        for seed in range(1, flags.seeds + 1)
    ]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parameter(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError as error:
        raise ValueError(f"--parameter is NAME=NUMBER, not '{text}'.") from error


def _table(row: "Row") -> str:
    body = [
        (
            name,
            round(entry.goodput_rps, 2),
            _rounded(entry.good_share, 3),
            _rounded(entry.goodput_behind, 2),
            _interval(entry.goodput_behind_low, entry.goodput_behind_high),
            round(entry.output_tokens_per_s),
            _rounded(entry.ttft_p50_s, 3),
            _rounded(entry.ttft_p90_s, 3),
            _rounded(entry.tpot_p50_s and 1000 * entry.tpot_p50_s, 1),
            _rounded(entry.prefix_hit_rate, 3),
            entry.cost_per_million_output_tokens,
            round(entry.failed, 1),
        )
        for name, entry in row.policies.items()
    ]
    return f"{row.workload}@{row.fleet}  {row.stage}\n{output.table(_HEAD, body)}"


_HEAD = ("policy", "goodput/s", "good", "behind", "95 %", "out tok/s", "TTFT p50 s", "p90 s",
         "TPOT ms", "hit", "cost/M", "failed")  # fmt: skip


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:+.2f} to {high:+.2f}"


def _splits(report: "RaceReport") -> list[str]:
    if not report.splits:
        return []
    body = [
        (row.workload, row.rate_qps, row.split, round(row.goodput_rps, 2),
         _rounded(row.against_both, 3), round(row.output_tokens_per_s),
         _rounded(row.ttft_p50_s, 3), _rounded(row.ttft_p90_s, 3),
         _rounded(row.tpot_p50_s and 1000 * row.tpot_p50_s, 1), _rounded(row.pair_share, 3))
        for row in report.splits
    ]  # fmt: skip
    head = ("workload", "qps", "split", "goodput/s", "against both", "out tok/s", "TTFT p50 s",
            "p90 s", "TPOT ms", "pairs")  # fmt: skip
    return [output.table(head, body)]


def _judged(report: "RaceReport") -> str:
    from routing.simulator.race.page import result_of
    from routing.simulator.report.messages import say

    body = [
        ("MISSED" if verdict.is_met is False else result_of(verdict, "en"),
         say(verdict.demand, "en"), verdict.row, _rounded(verdict.figure, 3), verdict.bar,
         verdict.against)
        for verdict in report.verdicts
    ]  # fmt: skip
    return output.table(("", "demand", "row", "figure", "at least", "against"), body)
