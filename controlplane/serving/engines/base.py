"""What every engine's file offers, and the small rules that their command lines share."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["prefill", "decode", "both"]
Argument = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """An engine on one accelerator, described without any engine's own words."""

    name: str
    """Unique name of the engine; also its id towards other engines."""
    role: Role
    vendor: str
    accelerator: str
    """Short name of the accelerator model, for example `amd-mi325x`."""
    slot: int
    model: str
    """Short name of the model in the catalogue."""
    model_name: str
    """Name by which the weights are found."""
    revision: str = ""
    precision: str = "bf16"
    max_model_len: int
    kv_heads: int | None = None
    head_size: int | None = None
    host: str = "127.0.0.1"
    port: int = 0
    """0 lets the engine host choose a free one."""
    side_channel_port: int | None = None
    kv_events_port: int | None = None
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """More arguments of the pool; they win over the shipped ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCommand:
    """What to start: the program with its arguments, and variables added to its environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Support:
    """Whether an engine runs somewhere; the sentence says why or why not."""

    supported: bool
    sentence: str


def vendor_refusal(
    engine: str, vendors: Mapping[str, Mapping[str, Any]], *, vendor: str, precision: str
) -> Support | None:
    """Why an engine does not run on a vendor's accelerators; None when it is known to."""
    entry = vendors.get(vendor)
    if entry is None:
        known = ", ".join(sorted(vendors))
        sentence = f"{engine} is not known to run on '{vendor}'; known: {known}."
        return Support(supported=False, sentence=sentence)
    if precision not in entry["precisions"]:
        offered = ", ".join(entry["precisions"])
        sentence = f"{engine} on '{vendor}' runs {offered}, not {precision}."
        return Support(supported=False, sentence=sentence)
    return None


class EngineArgumentError(Exception):
    """An extra argument is not known to the engine; the message names the nearest known one."""


class EngineLauncher(Protocol):
    """One engine: where it runs, how it is started and what it declares about its KV."""

    slug: str
    program: tuple[str, ...]
    known_arguments: frozenset[str]

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Whether this engine runs a model of that precision in that role on that vendor."""

    def command(self, request: EngineRequest) -> EngineCommand:
        """Command line of one engine. Raises EngineArgumentError for an unknown argument."""

    def block_size_tokens(self, request: EngineRequest) -> int:
        """Tokens per block of the KV cache."""

    def memory_share(self, request: EngineRequest) -> float | None:
        """Share of the device's memory that the engine may use; None when it decides itself."""

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """Fields of the KV contract; a field that is unknown is left out."""


def checked_arguments(
    shipped: Mapping[str, Argument], wanted: Mapping[str, Argument], known: frozenset[str]
) -> dict[str, Argument]:
    """Shipped arguments with the wanted ones over them; unknown ones are refused by name."""
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise EngineArgumentError(
                f"Unknown engine argument '{name}'.{hint} "
                f"Known arguments: {', '.join(sorted(known))}."
            )
    return {**shipped, **wanted}


def flags(arguments: Mapping[str, Argument]) -> tuple[str, ...]:
    """Long options in alphabetical order; True is the bare option, False leaves it out."""
    words: list[str] = []
    for name in sorted(arguments):
        value = arguments[name]
        if value is True:
            words.append(f"--{name}")
        elif value is not False:
            words += [f"--{name}", str(value)]
    return tuple(words)


def compact(value: Mapping[str, Any]) -> str:
    """JSON as one word of a command line, with sorted keys, so that equal is equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def known_fields(contract: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a contract that have a value."""
    return {name: value for name, value in contract.items() if value is not None}
