"""`consort route` on files: a record explained, a configuration converted. No server is asked.

What they need of `routing` is loaded when they run, so that other commands start as fast as before.
"""

import argparse
import json
from typing import TYPE_CHECKING, Any

from controlplane.cli import files, output
from controlplane.cli.commands.base import Result, local
from controlplane.cli.errors import INVALID, USAGE, CliError

if TYPE_CHECKING:
    from routing.core.refusals import DocumentError


def add_convert(verbs: Any) -> None:
    """Declare `route convert`."""
    parser = verbs.add_parser(
        "convert",
        help="an EndpointPickerConfig of llm-d as part of a pool document, or the way back",
    )
    parser.add_argument("file", help="either kind, YAML or JSON; - reads what is piped in")
    parser.add_argument("--into", help="pool document that a configuration is put into")
    parser.add_argument(
        "--base", help="configuration that a pool document came from: keeps what has no counterpart"
    )
    local(parser, convert)


def convert(flags: argparse.Namespace) -> Result:
    """The other kind on stdout; what has no counterpart on stderr."""
    from routing.core.refusals import DocumentError
    from routing.llmd.exchange import exchange

    raw = files.read(flags.file)
    into = files.read(flags.into) if flags.into else None
    base = files.read(flags.base) if flags.base else None
    try:
        found = exchange(raw, into=into, base=base)
    except DocumentError as error:
        raise refused(error) from error
    form = "yaml" if found.is_llmd else "json"
    return Result(
        data=found.tree,
        lines=output.dumped(found.tree, form),
        notes=tuple(str(note) for note in found.notes),
    )


def explain_file(flags: argparse.Namespace) -> Result | None:
    """The record in a file, `@FILE` or `-`; None when a decision of the server is meant."""
    name = flags.decision or ""
    if name != "-" and not name.startswith("@"):
        return None
    from routing.explain.explanation import explain
    from routing.explain.reading import readable

    record = _record(files.read(name.removeprefix("@")), name)
    told = explain(record, language=flags.lang)
    data = {
        "record": readable(record),
        "explanation": {
            "language": told.language,
            "kind": told.kind,
            "sentence": told.sentence,
            "points": list(told.points),
        },
    }
    return Result(data=data, lines="")


def _record(raw: bytes, name: str) -> dict[str, Any]:
    """A record, or the answer that holds one. Raises CliError."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CliError(f"{name} is not JSON: {error}.", code=USAGE) from error
    if isinstance(found, dict) and isinstance(found.get("record"), dict):
        found = found["record"]
    if not isinstance(found, dict):
        raise CliError(f"{name} holds no decision record: it is no object.", code=INVALID)
    return found


def refused(error: "DocumentError") -> CliError:
    """A refusal as the error of a command, with its place and what is allowed."""
    place = f" at {error.pointer}" if error.pointer else ""
    hint = f"Allowed: {', '.join(error.allowed[:40])}." if error.allowed else ""
    return CliError(f"The file was refused{place}: {error.message}", code=INVALID, hint=hint)
