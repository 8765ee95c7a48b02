"""What every engine's file offers, and the small rules that their command lines share."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, Protocol

from controlplane.serving import facts

Role = Literal["prefill", "decode", "both"]
Argument = str | int | float | bool | Sequence[str]

HTTP_PORT, KV_EVENTS_PORT, KV_REPLAY_PORT, SIDE_CHANNEL_PORT = 8000, 5557, 5558, 5600
"""Ports of an engine inside its Pod: each Pod has an address of its own, so all have the same."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1"}
"""Variables under which an engine asks no model hub and reports its use to nobody."""
SECRET_ARGUMENTS = frozenset({"admin-api-key", "api-key", "hf-token", "ssl-keyfile-password"})
"""Options whose value is a secret: a command line can be read by everybody on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """One engine, described without any engine's own words."""

    name: str
    """Unique name of the engine; also its id towards other engines."""
    role: Role
    vendor: str
    accelerator: str
    """Short name of the accelerator model, for example `amd-mi325x`."""
    slot: int
    """Slot of its first accelerator; the others of a parallel engine follow it."""
    tensor_parallel: int = 1
    """Accelerators over which each layer is split."""
    pipeline_parallel: int = 1
    """Groups of accelerators that each hold some of the layers."""
    model: str
    """Short name of the model in the catalogue."""
    model_name: str
    """Name by which the weights are found."""
    model_path: str = ""
    """Folder with the model's files; empty leaves it to the engine to find `model_name`."""
    offline: bool = False
    """True on a site that asks nobody outside."""
    revision: str = ""
    precision: str = "bf16"
    max_model_len: int
    kv_heads: int | None = None
    head_size: int | None = None
    host: str = "127.0.0.1"
    port: int = 0
    """0 lets the engine host choose a free one."""
    in_pod: bool = False
    """True in a container of a cluster: `$(POD_IP)` and `$(POD_NAME)` are filled in by the kubelet,
    and the device plugin chooses the devices."""
    side_channel_port: int | None = None
    kv_events_port: int | None = None
    kv_replay_port: int | None = None
    """Where cache events are asked for again; None offers no replay."""
    adapters: Mapping[str, str] = field(default_factory=dict)
    """LoRA adapters that are loaded at the start: folder by name."""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """More arguments of the pool; they win over the shipped ones."""

    @property
    def weights(self) -> str:
        """Where the engine looks for the weights."""
        return self.model_path or self.model_name

    @property
    def devices(self) -> tuple[int, ...]:
        """Slots of all its accelerators."""
        count = self.tensor_parallel * self.pipeline_parallel
        return tuple(range(self.slot, self.slot + count))

    @property
    def own_address(self) -> str:
        """Address at which other engines reach this one."""
        return "$(POD_IP)" if self.in_pod else self.host

    @property
    def events_topic(self) -> str:
        """Topic of its cache events, `kv@<pod>@<model>` by the convention of llm-d."""
        return f"kv@{'$(POD_NAME)' if self.in_pod else self.name}@{self.model}"


def inside_pod(request: EngineRequest, *, events: bool = True) -> EngineRequest:
    """The same engine in a Pod of its own; `events` lets it publish what enters its cache."""
    return replace(
        request,
        in_pod=True,
        host="0.0.0.0",  # noqa: S104  # a Pod is reached from outside of it
        port=HTTP_PORT,
        side_channel_port=SIDE_CHANNEL_PORT,
        kv_events_port=KV_EVENTS_PORT if events else None,
        kv_replay_port=KV_REPLAY_PORT if events else None,
    )


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
    """Options that a pool may set."""
    own_arguments: frozenset[str]
    """Options that follow from the pool, the role and the place; a pool may not set them."""

    def support(self, *, vendor: str, precision: str, role: Role) -> Support:
        """Whether this engine runs a model of that precision in that role on that vendor."""

    def command(self, request: EngineRequest) -> EngineCommand:
        """Command line of one engine. Raises EngineArgumentError for an unknown argument."""

    def block_size_tokens(self, request: EngineRequest) -> int:
        """Tokens per block of the KV cache."""

    def memory_share(self, request: EngineRequest) -> float | None:
        """Share of the device's memory that the engine may use; None when it decides itself."""

    def parallelism(self, request: EngineRequest) -> tuple[int, int]:
        """Tensor and pipeline parallel sizes, the pool's own arguments included."""

    def kv_contract(self, request: EngineRequest) -> dict[str, Any]:
        """Fields of the KV contract; a field that is unknown is left out."""


@cache
def shipped_options(engine: str) -> frozenset[str]:
    """Options that the engine's own command line knows, out of the shipped facts."""
    return frozenset(facts.load("arguments")[engine]["options"])


def check_arguments(launcher: EngineLauncher, wanted: Mapping[str, Argument]) -> None:
    """Raise EngineArgumentError, with the reason, for an argument that a pool may not set."""
    for name, value in wanted.items():
        if name in SECRET_ARGUMENTS:
            raise EngineArgumentError(
                f"'{name}' is a secret, and a command line can be read by everybody. Give it as a "
                "variable from a Secret."
            )
        if name in launcher.own_arguments:
            raise EngineArgumentError(
                f"'{name}' follows from the pool, the role and the place of an engine, so it cannot"
                " be set."
            )
        if name not in launcher.known_arguments:
            raise EngineArgumentError(_unknown(name, launcher.known_arguments))
        _check_value(name, value)


def _unknown(name: str, known: frozenset[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    # Real engines know hundreds: the nearest ones help, the whole list does not.
    shown = sorted(known) if len(known) <= 20 else difflib.get_close_matches(name, known, n=5)
    listing = f" Known arguments: {', '.join(shown)}." if shown else ""
    return f"Unknown engine argument '{name}'.{hint}{listing}"


def _check_value(name: str, value: Any) -> None:
    words = value if isinstance(value, list | tuple) else [value]
    is_word = all(isinstance(word, str | int | float) for word in words)
    if len(words) > 64 or not is_word or any("\x00" in str(word) for word in words):
        raise EngineArgumentError(
            f"'{name}' is neither a text, a number, true, false nor a list of at most 64 of them."
        )


def checked_arguments(
    launcher: EngineLauncher, shipped: Mapping[str, Argument], wanted: Mapping[str, Argument]
) -> dict[str, Argument]:
    """Shipped arguments with the wanted ones over them; raises EngineArgumentError."""
    check_arguments(launcher, wanted)
    return {**shipped, **wanted}


def flags(arguments: Mapping[str, Argument]) -> tuple[str, ...]:
    """Long options in alphabetical order.

    True is the bare option, False leaves it out, a list gives one option with several words.
    """
    words: list[str] = []
    for name in sorted(arguments):
        value = arguments[name]
        if value is True:
            words.append(f"--{name}")
        elif isinstance(value, str | int | float) and value is not False:
            words += [f"--{name}", str(value)]
        elif not isinstance(value, str | int | float):
            words += [f"--{name}", *(str(word) for word in value)]
    return tuple(words)


def device_variables(entry: Mapping[str, Any], request: EngineRequest) -> dict[str, str]:
    """The variable by which a process sees its own accelerators only; in a Pod it sees no other."""
    if request.in_pod or not entry["device_env"]:
        return {}
    return {entry["device_env"]: ",".join(str(slot) for slot in request.devices)}


def tcp(host: str, port: int) -> str:
    """A ZMQ address."""
    return f"tcp://{host}:{port}"


def compact(value: Mapping[str, Any]) -> str:
    """JSON as one word of a command line, with sorted keys, so that equal is equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def known_fields(contract: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a contract that have a value."""
    return {name: value for name, value in contract.items() if value is not None}
