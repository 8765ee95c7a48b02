"""`consort route`: why a request went where it went, and where another would go."""

import argparse
import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controlplane.cli import files, output
from controlplane.cli.commands import route_files, route_objects
from controlplane.cli.commands.base import Result, shared
from controlplane.cli.errors import USAGE, CliError

if TYPE_CHECKING:
    from controlplane.cli.client import Client

SHOWN_SECONDS = 0.0005


def add(commands: Any) -> None:
    """Declare `route explain`, `replay`, `test`, `convert` and `import`."""
    route = commands.add_parser("route", help="explain, replay, test, convert and import routing")
    verbs = route.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_explain(verbs)
    _add_replay(verbs)
    _add_test(verbs)
    route_files.add_convert(verbs)
    route_objects.add_import(verbs)


def _add_explain(verbs: Any) -> None:
    parser = verbs.add_parser(
        "explain", help="why a decision fell as it did, or what would happen to a request"
    )
    parser.add_argument(
        "decision",
        nargs="?",
        help="id of a recorded decision; @FILE or - reads the record itself, without a server",
    )
    _add_request(parser)
    parser.add_argument("--like", help="decision whose prefix the request shares")
    parser.add_argument("--shared-tokens", type=int)
    parser.add_argument("--prompt-tokens", type=int)
    shared(parser, explain, offline=_explain_file)


def _add_replay(verbs: Any) -> None:
    parser = verbs.add_parser("replay", help="decide a recorded decision again, changed")
    parser.add_argument("decision", help="id of a recorded decision")
    parser.add_argument("--policy")
    parser.add_argument("--force", default="", help="endpoint to choose")
    parser.add_argument("--remove", action="append", default=[], help="endpoint to leave out")
    parser.add_argument("--document-version", type=int)
    _add_language(parser)
    shared(parser, replay)


def _add_test(verbs: Any) -> None:
    parser = verbs.add_parser("test", help="send a request for real and explain it")
    _add_request(parser)
    parser.add_argument("--prompt", help="text; @FILE or - reads it from there")
    parser.add_argument(
        "--key-env", default="CONSORT_INFERENCE_KEY", help="variable with the inference key"
    )
    parser.add_argument("--run-id", help="makes a repeated call the same call")
    shared(parser, test)


def _add_request(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool")
    parser.add_argument("--tenant", default="test")
    parser.add_argument("--model")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--policy")
    parser.add_argument("--force", action="append", default=[], help="endpoint to choose")
    parser.add_argument("--avoid", action="append", default=[], help="endpoint to leave out")
    _add_language(parser)


def _add_language(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lang", choices=("en", "ko"), default="en")


def explain(client: "Client", flags: argparse.Namespace) -> Result:
    """A recorded decision, or a request that is not sent."""
    if flags.decision:
        path = f"routing/decisions/{quote(flags.decision, safe='')}"
        told = client.get(path, language=flags.lang)
        return Result(data=told, lines=_told(told))
    if flags.prompt_tokens is None:
        raise CliError("Give the id of a decision, or --pool and --prompt-tokens.", code=USAGE)
    body = _request(flags) | {
        "prompt_tokens": flags.prompt_tokens,
        "like": flags.like,
        "shared_tokens": flags.shared_tokens,
    }
    told = client.post("routing/explain", body)
    return Result(data=told, lines=_told(told))


def _explain_file(flags: argparse.Namespace) -> Result | None:
    found = route_files.explain_file(flags)
    return found and Result(data=found.data, lines=_told(found.data))


def replay(client: "Client", flags: argparse.Namespace) -> Result:
    """A recorded decision, decided again."""
    before = client.get(f"routing/decisions/{quote(flags.decision, safe='')}")
    after = client.post(
        "routing/replay",
        {
            "decision": flags.decision,
            "policy": flags.policy,
            "force": flags.force or None,
            "remove": flags.remove,
            "document_version": flags.document_version,
            "language": flags.lang,
        },
    )
    rows = [
        (name, first, second, "" if first == second else "*")
        for name, first, second in _pairs(before["record"], after["record"])
    ]
    beside = output.table(("what", "recorded", "replayed", "changed"), rows)
    return Result(data=after, lines=f"{_told(after)}\n\n{beside}")


def test(client: "Client", flags: argparse.Namespace) -> Result:
    """A request that is really sent; the key comes from the environment, never from a flag."""
    key = os.environ.get(flags.key_env, "")
    if not key:
        raise CliError(f"The variable {flags.key_env} holds no inference key.", code=USAGE)
    body = _request(flags) | {"prompt": _text(flags.prompt), "key": key}
    told = client.post("routing/test", body, key=flags.run_id or f"route-test-{uuid.uuid4()}")
    lines = [f"{told['status']} from {told['router']} after {told['seconds']:.2f} s", told["text"]]
    if told.get("explained"):
        lines += ["", _told(told["explained"])]
    return Result(data=told, lines="\n".join(lines))


test.__test__ = False  # type: ignore[attr-defined]  # a command, whatever its name


def _request(flags: argparse.Namespace) -> dict[str, Any]:
    if not flags.pool:
        raise CliError("Give the pool with --pool.", code=USAGE)
    return {
        "pool": flags.pool,
        "tenant": flags.tenant,
        "model": flags.model,
        "max_tokens": flags.max_tokens,
        "policy": flags.policy,
        "force": flags.force,
        "avoid": flags.avoid,
        "language": flags.lang,
    }


def _text(given: str | None) -> str:
    if not given:
        raise CliError("Give the text with --prompt.", code=USAGE)
    if given != "-" and not given.startswith("@"):
        return given
    try:
        return files.read(given.removeprefix("@")).decode()
    except UnicodeDecodeError as error:
        raise CliError(f"{given} is not UTF-8: {error}.", code=USAGE) from error


def _told(answer: dict[str, Any]) -> str:
    from routing.explain.reading import readable

    # Nobody checked what a router or a file holds.
    explanation, record = answer.get("explanation"), readable(answer.get("record"))
    lines = []
    if explanation:
        lines = [explanation["sentence"], *(f"  {point}" for point in explanation["points"])]
    table = _candidates(record)
    return "\n".join([*lines, *(["", table] if table else [])])


def _candidates(record: dict[str, Any]) -> str:
    rows = [row for row in record.get("candidates") or () if row.get("terms")]
    if not rows:
        return ""
    every = dict.fromkeys(name for row in rows for name in row["terms"])
    names = [name for name in every if name not in ("total", "tpot")]
    shown = [
        name for name in names if any(row["terms"].get(name, 0) > SHOWN_SECONDS for row in rows)
    ]
    body: list[Sequence[object]] = [
        (
            "*" if row["endpoint"] == record.get("destination") else " ",
            f"{row['prefill']} → {row['endpoint']}" if row.get("prefill") else row["endpoint"],
            int(row.get("hit_tokens") or 0),
            *(row["terms"].get(name) for name in shown),
            row["terms"].get("total"),
        )
        for row in rows
    ]
    return output.table((" ", "candidate", "held", *shown, "sum s"), body)


def _pairs(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    names = ("policy", "document_version", "destination", "prefill", "runner_up", "margin_seconds")
    return [(name, output.text(before.get(name)), output.text(after.get(name))) for name in names]
