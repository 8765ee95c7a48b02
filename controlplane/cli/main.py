"""The command line: flags to a command, its result to the terminal, its errors to exit codes."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from controlplane.cli import output, settings
from controlplane.cli.commands import calibrate, export, plan, race, route, simulate
from controlplane.cli.commands.base import Result
from controlplane.cli.errors import INTERRUPTED, CliError

COMMANDS = (calibrate, export, plan, race, route, simulate)


def parser() -> argparse.ArgumentParser:
    """All commands."""
    top = argparse.ArgumentParser(prog="consort", description="Client of a Consort control plane.")
    commands = top.add_subparsers(dest="noun", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Answers go to stdout, everything else to stderr."""
    flags = parser().parse_args(arguments)
    try:
        return _run(flags)
    except CliError as error:
        print(error, file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        if flags.debug and error.request_id:
            print(f"request {error.request_id}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(flags: argparse.Namespace) -> int:
    result = flags.offline(flags) or _asked(flags)
    for note in result.notes:
        print(note, file=sys.stderr)
    form = output.chosen(flags.output, is_terminal=sys.stdout.isatty())
    print(result.lines if form == "table" else output.dumped(result.data, form))
    return result.code


def _asked(flags: argparse.Namespace) -> Result:
    found = settings.read(flags, os.environ, home=Path.home())
    # The HTTP library takes most of a small command's time, so help and usage do without it.
    from controlplane.cli.client import Client

    result: Result = flags.command(Client(found), flags)
    return result
