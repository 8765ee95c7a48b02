"""What the planner answers. Plain values, so that they are stored and printed as they are."""

from typing import Literal

import msgspec

from routing.planner.accuracy import ErrorBand
from routing.planner.placement import Placement
from routing.planner.trial import Outcome

Kind = Literal["now", "both", "split"]
Verdict = Literal["keep", "both", "split", "impossible"]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence by its code, with numbers; `routing.planner.words` says it."""

    code: str
    numbers: dict[str, float | str | None] = {}


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Queueing estimate. Modelled."""

    capacity_rps: float
    limited_by: str
    ttft_seconds: float | None
    tpot_seconds: float | None
    hit_share: float


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve a pool, and what it would do."""

    kind: Kind
    placement: Placement
    bound: Bound
    outcome: Outcome | None
    """`None` for what was not worth a simulation."""
    accelerators: int
    moves: int
    """Accelerators that change role or pool."""
    cost_per_hour: str | None
    cost_per_million_output: str | None
    """At the simulated output; decimals as text, in the plan's currency."""
    watts_at_most: float | None
    reasons: tuple[Reason, ...] = ()
    """Why it is not the advice; why it is, for the advice."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A group that a model cannot use."""

    group: str
    reason: Reason


class PoolAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """Of one pool."""

    pool: str
    model: str
    verdict: Verdict
    chosen: Option | None
    alternatives: tuple[Option, ...]
    reasons: tuple[Reason, ...]
    refused: tuple[Refused, ...]
    offered_rps: float
    ttft_target_seconds: float
    tpot_target_seconds: float
    gain: float | None
    """Goodput of the advice over the best that does without it, minus 1; `None` is not known."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Advice for a fleet."""

    pools: tuple[PoolAdvice, ...]
    seed: int
    currency: str | None
    error: ErrorBand
    engine_model: str
    bounded: int
    """Placements that the estimate looked at."""
    simulated: int
    requests: int
    """Requests in virtual time."""
