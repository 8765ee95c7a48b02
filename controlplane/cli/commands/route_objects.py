"""`consort route import`: objects of an inference gateway as part of a pool document.

No server is asked; what it needs of `routing` is loaded when it runs.
"""

import argparse
import json
from typing import TYPE_CHECKING, Any

from controlplane.cli import files, output
from controlplane.cli.commands.base import Result, local
from controlplane.cli.commands.route_files import refused

if TYPE_CHECKING:
    from routing.llmd.objects.effects import Effects
    from routing.llmd.objects.importing import Change


def add_import(verbs: Any) -> None:
    """Declare `route import`."""
    parser = verbs.add_parser(
        "import",
        help="InferencePool, HTTPRoute, InferenceObjective and InferenceModelRewrite as what they"
        " change in a pool document",
    )
    parser.add_argument("file", nargs="+", help="YAML or JSON; - reads what is piped in")
    parser.add_argument("--pool", help="name of the InferencePool, when there are several")
    parser.add_argument("--into", help="pool document that would change")
    local(parser, import_objects)


def import_objects(flags: argparse.Namespace) -> Result:
    """The objects' part of a document, or with --into what changes; notes on stderr."""
    from routing.core.document import parse_document
    from routing.core.refusals import DocumentError
    from routing.llmd.objects.effects import effects_of
    from routing.llmd.objects.importing import put_into
    from routing.llmd.objects.reading import joined, read

    texts = [(name, files.read(name)) for name in flags.file]
    into = files.read(flags.into) if flags.into else None
    try:
        objects = joined([read(raw, source=name) for name, raw in texts])
        effects = effects_of(objects, pool=flags.pool)
        found = None if into is None else put_into(parse_document(into), effects)
    except DocumentError as error:
        raise refused(error) from error
    if found is None:
        part = _part(effects)
        notes = tuple(map(str, effects.notes))
        return Result(data=part, lines=output.dumped(part, "json"), notes=notes)
    return Result(
        data={
            "changes": [_plain(change) for change in found.changes],
            "failure_mode": effects.failure_mode,
            "document": _plain(found.document),
        },
        lines=_table(found.changes),
        notes=tuple(map(str, found.notes)),
    )


def _part(effects: "Effects") -> dict[str, Any]:
    return {
        "objectives": effects.objectives,
        "rewrites": [_plain(rule) for rule in effects.rewrites],
        "target_ports": effects.target_ports,
        "failure_mode": effects.failure_mode,
    }


def _table(changes: "tuple[Change, ...]") -> str:
    if not changes:
        return "Nothing changes."
    rows = [(change.pointer, _cell(change.before), _cell(change.after)) for change in changes]
    return output.table(("where", "before", "after"), rows)


def _cell(value: Any) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)
