"""`consort simulate` and `consort replay`: a fleet and its traffic in virtual time.

No server is asked. What they need of `routing` is loaded when they run, so that other commands
start as fast as without them.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.cli import files, output
from controlplane.cli.commands.base import Result, local
from controlplane.cli.errors import INVALID, USAGE, CliError
from controlplane.cli.progress import Progress

if TYPE_CHECKING:
    from routing.simulator.report.messages import Language
    from routing.simulator.study import RunReport, Study, StudyReport

HEAD = ("policy", "seed", "stage", "sent", "answered", "good/s", "out tok/s", "TTFT p50 s",
        "p90 s", "TPOT p50 ms", "hit", "cost/M out")  # fmt: skip
MOST_SEED = 2**32


def add(commands: Any) -> None:
    """Declare both."""
    parser = commands.add_parser(
        "simulate",
        help="what a fleet would do with some traffic, from a scenario file",
        description="Runs the router's own code over modelled engines in virtual time. The file is"
        " described in docs/simulation.md.",
    )
    parser.add_argument("file", help="scenario, YAML; - reads what is piped in")
    _add_runs(parser)
    local(parser, simulate)
    parser = commands.add_parser(
        "replay",
        help="recorded requests on a simulated fleet",
        description="Traces of Mooncake (JSONL) and Azure (CSV), and usage that our routers wrote.",
    )
    parser.add_argument("file", help="trace, or the folder of a router's spool")
    parser.add_argument("--format", choices=("mooncake", "azure", "consort"))
    parser.add_argument("--fleet", default="nxt-3vendor",
                        help="name of a fleet, or ACCELERATOR=COUNT,…")  # fmt: skip
    parser.add_argument("--pool", help="pool document, instead of a fleet")
    parser.add_argument("--model", help="as in profiles.yaml; the fleet's or the pool's without it")
    parser.add_argument("--speed", default="1", help="times faster than recorded: 8 or x8")
    parser.add_argument("--limit", type=int, help="the first so many requests")
    parser.add_argument("--longest-tokens", type=int, help="cut longer prompts to it")
    parser.add_argument("--shared-share", type=float, help="of prompts, where the trace is silent")
    _add_runs(parser)
    local(parser, replay)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", action="append", default=[], help="instead of the file's")
    parser.add_argument("--compare", default="", metavar="A,B", help="several policies")
    parser.add_argument(
        "--seed", action="append", default=[], type=int, help="instead of the file's"
    )
    parser.add_argument("--out", type=Path, help="report.json or report.html, written at the end")
    parser.add_argument("--lang", choices=("en", "ko"), default="en", help="of the HTML report")


def simulate(flags: argparse.Namespace) -> Result:
    """Run a scenario file."""
    from routing.simulator.scenario_file import ScenarioError, read_study

    folder = Path() if flags.file == "-" else Path(flags.file).parent
    try:
        study = read_study(files.read(flags.file), read=files.reader(folder))
    except ScenarioError as error:
        raise CliError(f"{flags.file}: {error}", code=INVALID, hint=_hint(error.allowed)) from error
    return _carried_out(study, flags)


def replay(flags: argparse.Namespace) -> Result:
    """Run a trace on a fleet."""
    from routing.core.document import DocumentError
    from routing.simulator.scenario_file import study_of

    try:
        read = files.reader(Path())
        raw = read(flags.file)
        study = study_of(
            _scenario(flags, raw), read=lambda path: raw if path == flags.file else read(path)
        )
    except OSError as error:
        raise CliError(f"{flags.file} cannot be read: {error}.", code=USAGE) from error
    except DocumentError as error:
        raise CliError(error.message, code=INVALID, hint=_hint(error.allowed)) from error
    return _carried_out(study, flags)


def _scenario(flags: argparse.Namespace, raw: bytes) -> dict[str, Any]:
    """What a scenario file would say."""
    workload = {
        "id": Path(flags.file).stem,
        "kind": "trace",
        "format": flags.format or _format(raw),
        "path": flags.file,
        "speed": _speed(flags.speed),
        "limit": flags.limit,
        "longest_tokens": flags.longest_tokens,
        "shared_share": flags.shared_share,
    }
    fleet = {"pool": {"document": flags.pool}} if flags.pool else {"fleet": _fleet(flags.fleet)}
    return {
        "name": "replay",
        "model": flags.model,
        "workload": {name: value for name, value in workload.items() if value is not None},
        **fleet,
    }


def _format(raw: bytes) -> str:
    start = raw[:4096]
    if b'"hash_ids"' in start:
        return "mooncake"
    return "azure" if start.startswith(b"TIMESTAMP,") else "consort"


def _speed(text: str) -> float:
    try:
        return float(text.lstrip("x\u00d7"))
    except ValueError as error:
        raise CliError(f"--speed is a number such as 8 or x8, not '{text}'.", code=USAGE) from error


def _fleet(text: str) -> str | list[dict[str, Any]]:
    if "=" not in text:
        return text
    members = []
    for part in text.split(","):
        accelerator, _, count = part.partition("=")
        if not count.isdigit():
            raise CliError(f"--fleet is ACCELERATOR=COUNT,…, not '{part}'.", code=USAGE)
        members.append({"accelerator": accelerator.strip(), "count": int(count)})
    return members


def _carried_out(study: "Study", flags: argparse.Namespace) -> Result:
    import msgspec

    from routing.simulator.study import carry_out

    study = _chosen(study, flags)
    write = _writer(flags, study)
    with Progress() as progress:
        report = carry_out(study, told=progress)
    if write is not None:
        files.write_whole(flags.out, write(report))
    notes = ("All numbers are simulated.", *report.notes)
    if flags.out is not None:
        notes += (f"Written: {flags.out}",)
    return Result(data=msgspec.to_builtins(report), lines=_table(report), notes=notes)


def _chosen(study: "Study", flags: argparse.Namespace) -> "Study":
    """With the policies and seeds that the flags name."""
    from routing.simulator.study import UnknownPolicyError, with_policies, with_seeds

    compared = [name.strip() for name in flags.compare.split(",") if name.strip()]
    names = tuple(dict.fromkeys([*flags.policy, *compared]))
    if any(not 0 <= seed <= MOST_SEED for seed in flags.seed):
        raise CliError(f"--seed is 0 to {MOST_SEED}.", code=USAGE)
    try:
        study = with_policies(study, names) if names else study
    except UnknownPolicyError as error:
        raise CliError(str(error), code=USAGE, hint=_hint(error.allowed)) from error
    return with_seeds(study, tuple(dict.fromkeys(flags.seed))) if flags.seed else study


def _writer(flags: argparse.Namespace, study: "Study") -> "Callable[[StudyReport], bytes] | None":
    """Before anything is simulated: what makes the file that is asked for."""
    if flags.out is None:
        return None
    files.prepare(flags.out)
    if flags.out.suffix == ".json":
        return output.report
    if flags.out.suffix == ".html":
        return partial(_as_html, study=study, language=flags.lang)
    raise CliError(f"--out ends in .json or .html, not '{flags.out.name}'.", code=USAGE)


def _as_html(report: "StudyReport", *, study: "Study", language: "Language") -> bytes:
    from routing.simulator.notes import told
    from routing.simulator.report.comparison import page_of
    from routing.simulator.report.html import html_of

    has_seeds = len({run.seed for run in report.runs}) > 1
    stages = {
        f"{run.policy}, {run.seed}" if has_seeds else run.policy: run.stages for run in report.runs
    }
    title = f"{report.name}: {report.workload}, {report.model}"
    text = [told(note, language) for note in study.notes]
    return html_of(page_of(title, stages, language=language, text=text)).encode()


def _table(report: "StudyReport") -> str:
    rows = [row for run in report.runs for row in _rows(run)]
    return output.table(HEAD, rows)


def _rows(run: "RunReport") -> Iterator[tuple[object, ...]]:
    for stage in run.stages:
        ttft, tpot = stage.ttft, stage.tpot
        yield (
            run.policy,
            str(run.seed),
            f"{stage.name} (warm-up)" if stage.is_warm_up else stage.name,
            stage.sent,
            stage.ok,
            round(stage.goodput_rps, 2),
            round(stage.output_tokens_per_s),
            ttft and round(ttft.p50, 3),
            ttft and round(ttft.p90, 3),
            tpot and round(1000 * tpot.p50, 1),
            stage.prefix_hit_rate and round(stage.prefix_hit_rate, 3),
            stage.cost_per_million_output_tokens,
        )


def _hint(allowed: tuple[str, ...]) -> str:
    return f"Allowed: {', '.join(allowed[:40])}." if allowed else ""
