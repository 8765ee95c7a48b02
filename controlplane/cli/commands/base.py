"""What a command gets, and what it gives back."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controlplane.cli.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer for programs, and the same as lines for a person."""

    data: Any
    lines: str
    notes: tuple[str, ...] = ()
    """What to know about it; it goes to stderr."""
    code: int = 0
    """Exit code: a command may answer in full and still say no."""


Command = Callable[["Client", argparse.Namespace], Result]
Offline = Callable[[argparse.Namespace], Result | None]
"""What a command does without a server; None when it needs one."""


def nothing(_: argparse.Namespace) -> None:
    """A command that always needs the server."""


def shared(
    parser: argparse.ArgumentParser, command: Command, *, offline: Offline = nothing
) -> None:
    """Flags of every command that may ask the server."""
    parser.set_defaults(command=command, offline=offline)
    group = parser.add_argument_group("server and output")
    _output(group)
    group.add_argument("--url", help="address of the control plane (CONSORT_URL)")
    group.add_argument("--token", help="API token (CONSORT_TOKEN is safer: flags are visible)")
    group.add_argument("--ca-file", help="certificates to trust (CONSORT_CA_FILE)")
    group.add_argument("--profile", help="section of ~/.config/consort/config.toml")
    group.add_argument("--debug", action="store_true", help="add the request id to errors")


def local(parser: argparse.ArgumentParser, command: Callable[[argparse.Namespace], Result]) -> None:
    """Flags of a command that never asks the server."""
    parser.set_defaults(offline=command, debug=False)
    _output(parser)


def _output(group: argparse._ActionsContainer) -> None:
    group.add_argument("-o", "--output", choices=("table", "json", "yaml"))
