"""Workloads as a file states them: one struct a kind, chosen by `kind`."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

from routing.core.specs.base import Count, Positive, Rate, Seconds, Share, Strict, Timeout
from routing.simulator.workloads.open_loop import PER_STAGE, Arrivals

Tokens = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Spread = Annotated[float, msgspec.Meta(ge=0, le=2)]
Block = Literal[16, 32, 64, 128, 256, 512]
Clients = Annotated[int, msgspec.Meta(ge=1, le=10_000)]

Read = Callable[[str], bytes]
"""Gives the content of a file that a workload names. May raise OSError."""


class Requests(Strict, frozen=True, kw_only=True):
    """What says what a request is; `stages` say when they come, where that is not said elsewhere.

    `stages` are pairs of requests per second and seconds.
    """

    stages: Annotated[tuple[tuple[Rate, Timeout], ...], msgspec.Meta(max_length=200)] = ()
    warm_up_stages: Count = 0
    """The first ones, left out of totals."""
    arrivals: Arrivals = "poisson"
    block_tokens: Block = 64

    @property
    def expected_requests(self) -> float:
        """Of all stages."""
        return sum(rate * seconds for rate, seconds in self.stages)


class SharedPrefixSpec(Requests, frozen=True, kw_only=True):
    """`shared-prefix`: see `shared_prefix.SharedPrefix`."""

    groups: Count = 150
    prompts: Count = 5
    system_tokens: Tokens = 6000
    question_tokens: Tokens = 1200
    output_tokens: Tokens = 1000
    output_spread: Spread = 0.05


class RandomLengthsSpec(Requests, frozen=True, kw_only=True):
    """`random-lengths`: see `random_lengths.RandomLengths`."""

    input_tokens: Tokens
    input_spread: Spread = 0.0
    output_tokens: Tokens
    output_spread: Spread = 0.0
    most_input_tokens: Tokens | None = None


class Part(Strict, frozen=True, kw_only=True):
    """Of a mixture."""

    share: Rate
    requests: dict[str, Any]
    """A workload without stages, with its `kind`."""


class MixtureSpec(Requests, frozen=True, kw_only=True):
    """`mixture`: see `mixture.Mixture`."""

    parts: Annotated[tuple[Part, ...], msgspec.Meta(min_length=1, max_length=20)]


class ClosedLoopSpec(Strict, frozen=True, kw_only=True):
    """`closed-loop`: see `closed_loop.ClosedLoop`."""

    requests: dict[str, Any]
    """A workload without stages, with its `kind`."""
    clients: Annotated[tuple[Clients, ...], msgspec.Meta(min_length=1, max_length=100)]
    requests_per_client: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    pause_seconds: Seconds = 0.0
    ramp_seconds: Seconds = 1.0

    @property
    def expected_requests(self) -> float:
        """Of all stages."""
        return float(sum(self.clients) * self.requests_per_client)


class AgentsSpec(Strict, frozen=True, kw_only=True):
    """`agents`: see `agents.Agents`."""

    stages: Annotated[tuple[tuple[Rate, Timeout], ...], msgspec.Meta(min_length=1, max_length=200)]
    warm_up_stages: Count = 0
    kinds: Positive = 4
    system_tokens: Tokens = 6000
    task_tokens: Tokens = 800
    tool_tokens: Tokens = 700
    answer_tokens: Tokens = 250
    turns: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 8.0
    sub_agents: Annotated[float, msgspec.Meta(ge=0, le=100)] = 1.0
    sub_system_tokens: Tokens = 3000
    sub_turns: Annotated[float, msgspec.Meta(ge=1, le=1000)] = 4.0
    pause_seconds: Seconds = 2.0
    most_tokens: Tokens = 30_000
    block_tokens: Block = 64

    @property
    def expected_requests(self) -> float:
        """Of all stages."""
        return sum(rate * seconds for rate, seconds in self.stages)


class TraceSpec(Strict, frozen=True, kw_only=True):
    """`trace`: recorded requests, from a file (`path`) or one of those that are `packaged`."""

    format: Literal["mooncake", "azure", "consort"]
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    packaged: Annotated[str, msgspec.Meta(pattern=r"^[a-z-]+\.(jsonl|csv)$")] | None = None
    speed: Annotated[float, msgspec.Meta(gt=0, le=10_000)] = 1.0
    limit: Annotated[int, msgspec.Meta(ge=1, le=PER_STAGE)] | None = None
    longest_tokens: Tokens | None = None
    """Longer prompts are cut to it."""
    block_tokens: Block | None = None
    """`None` is the format's: 512 of Mooncake's, 64 of the others."""
    shared_share: Share = 0.0
    """Of each prompt's tokens; for `azure`, which does not say what prompts share."""
    groups: Positive = 20
    """Of prompts that share."""


class InferencePerfSpec(Strict, frozen=True, kw_only=True):
    """`inference-perf`: a configuration of that program, from a file."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    block_tokens: Block = 64


Spec = (
    SharedPrefixSpec
    | RandomLengthsSpec
    | MixtureSpec
    | ClosedLoopSpec
    | AgentsSpec
    | TraceSpec
    | InferencePerfSpec
)

KINDS: dict[str, type[Spec]] = {
    "shared-prefix": SharedPrefixSpec,
    "random-lengths": RandomLengthsSpec,
    "mixture": MixtureSpec,
    "closed-loop": ClosedLoopSpec,
    "agents": AgentsSpec,
    "trace": TraceSpec,
    "inference-perf": InferencePerfSpec,
}
