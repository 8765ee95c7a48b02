"""How a pool chooses endpoints, what it aims at, and what it records."""

from typing import Annotated, Any, Literal

import msgspec

from routing.core.specs.base import Rate, Share, Slug, Strict, Weight

PolicyName = Literal[
    "random",
    "round-robin",
    "least-requests",
    "power-of-two",
    "session-hash",
    "sglang-cache-aware",
    "llm-d-weighted",
    "llm-d-precise",
    "llm-d-token-aware",
    "dynamo",
    "weighted",
    "consort",
]


class ConsortParameters(Strict, frozen=True, kw_only=True):
    """Weights of the price; defaults and their reasons are in `routing.core.pricing`."""

    harm_weight: Weight = 1.0
    capacity_weight: Weight = 10.0
    money_weight: Weight = 0.0
    tie_share: Share = 0.03
    leave_home_factor: Weight = 4.0
    """How many times the recompute time leaving the longest hit has to gain."""
    slo_weight: Weight = 3.0
    """Seconds of penalty per second over a target; fades when no endpoint can meet it."""


class Plugin(Strict, frozen=True, kw_only=True):
    """A plugin of the weighted policy, by llm-d's name and with llm-d's parameters."""

    type: Slug
    name: Slug | None = None
    """How other plugins refer to it; `None` is its type."""
    weight: Weight = 1.0
    """Of a scorer."""
    parameters: dict[str, Any] = {}


class Profile(Strict, frozen=True, kw_only=True):
    """Plugins that run for one step of a decision, in order: filters, scorers, one picker."""

    name: Literal["default", "prefill", "decode"] = "default"
    plugins: Annotated[tuple[Plugin, ...], msgspec.Meta(max_length=50)] = ()


class Policy(Strict, frozen=True, kw_only=True):
    """How an endpoint is chosen: `parameters` are for `consort`, the rest for `weighted`.

    `weighted` without plugins and profiles is llm-d's default: queue 2, KV usage 2, prefix 3.
    """

    name: PolicyName = "consort"
    parameters: ConsortParameters = msgspec.field(default_factory=ConsortParameters)
    plugins: Annotated[tuple[Plugin, ...], msgspec.Meta(max_length=50)] = ()
    """What stands outside of profiles: a profile handler, its deciders, producers."""
    profiles: Annotated[tuple[Profile, ...], msgspec.Meta(max_length=10)] = ()


class Slo(Strict, frozen=True, kw_only=True):
    """Targets of a request; a caller may ask for others by header."""

    ttft_seconds: Rate | None = None
    tpot_seconds: Rate | None = None


class Recording(Strict, frozen=True, kw_only=True):
    """Which decisions are kept as records, and which policies look on without deciding."""

    sample_rate: Share = 0.02
    """Share of ordinary decisions; errors and refusals always."""
    shadow_policies: Annotated[tuple[PolicyName, ...], msgspec.Meta(max_length=3)] = ()
    shadow_rate: Share = 0.1
    """Share of decisions that shadow policies are asked about."""
