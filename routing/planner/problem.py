"""What the planner is asked: a fleet, the models to serve, their traffic and their targets."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

MOST_GROUPS = 24
MOST_DEMANDS = 20
MOST_ACCELERATORS = 20_000

Slug = Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
Reason = Annotated[str, msgspec.Meta(max_length=500)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Some = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refuses members it does not know."""


class Card(Strict, frozen=True, kw_only=True):
    """Data sheet of one accelerator, for classes that `profiles.yaml` does not have."""

    peak_tflops: Positive
    """Dense, at the precision of the weights."""
    memory_bytes: Positive
    bandwidth_bytes_per_second: Positive
    link_bytes_per_second: Positive = 10e9
    """Network, one direction; 100 Gb/s Ethernet moves about 10 GB/s (`profiles.yaml`, network)."""


class Shape(Strict, frozen=True, kw_only=True):
    """What a model costs, for models that `profiles.yaml` does not have."""

    layers: Some
    hidden: Some
    kv_bytes_per_token: Positive
    weight_bytes: Positive
    flops_per_token: Positive
    attention_flops_per_token_per_context_token: Annotated[float, msgspec.Meta(ge=0)]
    max_model_len: Some = 32_768


class Group(Strict, frozen=True, kw_only=True):
    """Equal nodes with equal accelerators."""

    name: Slug
    """Unique in the fleet."""
    accelerator: Slug
    """Class, as in `profiles.yaml` or the inventory."""
    nodes: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    accelerators_per_node: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    speed: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0
    """Of the class's; what somebody measured."""
    price_per_hour: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,8})?$")] | None = (
        None
    )
    """Of one accelerator, a decimal number as text; `None` is unknown."""
    watts: Positive | None = None
    """Power limit of one accelerator."""
    card: Card | None = None
    refuses: Annotated[dict[Slug, Reason], msgspec.Meta(max_length=MOST_DEMANDS)] = {}
    """Models that no engine runs here, with the reason."""

    @property
    def accelerators(self) -> int:
        """In all nodes."""
        return self.nodes * self.accelerators_per_node


class Traffic(Strict, frozen=True, kw_only=True):
    """The shape of a load. Lengths in tokens, means."""

    rate_qps: Annotated[float, msgspec.Meta(gt=0, le=100_000)]
    prompt_tokens: Annotated[int, msgspec.Meta(ge=1, le=2_000_000)]
    output_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    shared_tokens: Count = 0
    """Leading part of a prompt that others have, too."""
    groups: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """Different shared beginnings; 0 shares nothing."""


class Target(Strict, frozen=True, kw_only=True):
    """What an answer must keep to be good. Seconds."""

    ttft_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 3.0
    tpot_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 0.08


class Roles(Strict, frozen=True, kw_only=True):
    """Accelerators by role."""

    prefill: Count = 0
    decode: Count = 0
    both: Count = 0

    @property
    def total(self) -> int:
        """In any role."""
        return self.prefill + self.decode + self.both


class Demand(Strict, frozen=True, kw_only=True):
    """A pool: one model, its traffic, its target, and who serves it now."""

    model: Slug
    traffic: Traffic
    pool: Annotated[str, msgspec.Meta(max_length=120)] = ""
    """Name in reports; the model's when empty."""
    target: Target = Target()
    shape: Shape | None = None
    now: dict[str, Roles] = {}
    """Roles of today by group; empty for a pool that is still to be built."""
    may_split: bool = True
    """False keeps every engine at both phases."""

    @property
    def name(self) -> str:
        """Of the pool."""
        return self.pool or self.model


class Problem(Strict, frozen=True, kw_only=True):
    """Everything that advice depends on, but for the seed."""

    groups: Annotated[tuple[Group, ...], msgspec.Meta(min_length=1, max_length=MOST_GROUPS)]
    demands: Annotated[tuple[Demand, ...], msgspec.Meta(min_length=1, max_length=MOST_DEMANDS)]
    currency: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")] | None = None

    def __post_init__(self) -> None:
        _unique("group", [group.name for group in self.groups])
        _unique("pool", [demand.name for demand in self.demands])
        total = sum(group.accelerators for group in self.groups)
        if total > MOST_ACCELERATORS:
            raise ValueError(f"{total} accelerators; a plan takes at most {MOST_ACCELERATORS}.")
        for group in self.groups:
            held = sum(demand.now.get(group.name, Roles()).total for demand in self.demands)
            if held > group.accelerators:
                raise ValueError(
                    f"Group '{group.name}' has {group.accelerators} accelerators, and pools hold "
                    f"{held} of them now."
                )
        for demand in self.demands:
            _check_demand(demand, {group.name for group in self.groups})


class ProblemError(Exception):
    """The input cannot be planned; the message says where and what is allowed."""


def parse_problem(values: Mapping[str, object]) -> Problem:
    """A problem from plain values, as YAML or JSON gives them.

    Raises ProblemError that names the member.
    """
    try:
        return msgspec.convert(values, Problem)
    except (msgspec.ValidationError, ValueError) as error:
        raise ProblemError(str(error)) from error


def _check_demand(demand: Demand, groups: set[str]) -> None:
    unknown = sorted(set(demand.now) - groups)
    if unknown:
        raise ValueError(
            f"Pool '{demand.name}' names the group '{unknown[0]}', which the fleet does not have. "
            f"Known are: {', '.join(sorted(groups))}."
        )
    traffic = demand.traffic
    if traffic.shared_tokens > traffic.prompt_tokens:
        raise ValueError(
            f"Pool '{demand.name}' shares {traffic.shared_tokens} tokens of prompts of "
            f"{traffic.prompt_tokens}; share at most the whole prompt."
        )


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Two {what}s are called '{name}'; names must differ.")
