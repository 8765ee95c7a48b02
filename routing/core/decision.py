"""The outcome of a choice: what was chosen, at which price, and what was out."""

from typing import Any

import msgspec
import numpy as np

from routing.core.pricing import BestTerms, Rows
from routing.core.request import InferenceRequest
from routing.core.table import Flags, Floats


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why no endpoint was chosen: 403 forbidden, 404 unknown, 429 taken, 503 none."""

    status: int
    code: str
    message: str
    retry_after_seconds: float | None = None
    rule: str = ""
    """Id of the rule that decided, for example `jurisdiction` or `limit:key.tokens_per_minute`."""
    waits_for: str | None = None
    """The endpoint that was chosen and has no room at present; callers are not told."""
    dropped_reason: str | None = None
    """llm-d's word for `x-llm-d-request-dropped-reason`, where it has one."""


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """What the chosen endpoint is expected to do; NaN where the policy does not predict."""

    hit_tokens: int = 0
    """Prompt tokens expected in the cache of the endpoint that computes the prompt."""
    uncached_tokens: int = 0
    ttft_seconds: float = float("nan")
    tpot_seconds: float = float("nan")
    output_tokens: int = 0
    destination_hit_tokens: int = 0
    """Prompt tokens expected in the destination's own cache; with a pair the rest is moved."""
    indexed_tokens: int = 0
    """The hit before trust, what the index alone says; trust is learned against it."""
    wait_seconds: float = float("nan")
    """Queue and admission."""
    admission_seconds: float = 0.0
    """Part of the wait that is for memory or for a free sequence."""
    transfer_seconds: float = float("nan")
    load_seconds: float = 0.0
    """Part of the time to the first token that brings KV from a lower tier."""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Every endpoint that passed the filters, with its price term by term.

    All arrays have the length of the endpoint table; `rows` says which of its rows took part.
    """

    rows: Rows
    terms: BestTerms | None = None
    """`None` for policies that have no price."""
    hit_tokens: Floats | None = None
    signal_age_seconds: Floats | None = None
    """Seconds since the engine was last heard; NaN when it never was."""


class ShadowChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What another policy would have done on the same state; it had no effect."""

    policy: str
    destination: str | None
    """`None` when its own filters left nobody."""
    prefill: str | None = None
    agrees: bool
    """Same destination as the decision's."""
    regret_seconds: float = float("nan")
    """How much dearer its choice is by the price of `consort`; negative when it is cheaper."""
    ttft_seconds: float = float("nan")
    """Expected at its destination."""
    live_ttft_seconds: float = float("nan")
    """Expected at the decision's own."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One choice. `destination` is `None` exactly when `refusal` is set."""

    id: str
    request_id: str
    policy: str
    pool: str
    document_version: int
    decided_at: float
    destination: str | None = None
    fallbacks: tuple[str, ...] = ()
    prefill: str | None = None
    """Endpoint that computes the prompt for the destination; `None` computes it there."""
    refusal: Refusal | None = None
    predicted: Predicted = msgspec.field(default_factory=Predicted)
    margin_seconds: float | None = None
    """How much dearer the runner-up is; `None` without a price or without a runner-up."""
    runner_up: str | None = None
    reason: str = ""
    """The rule that decided, in a few words."""
    candidates: Candidates | None = None
    endpoint_ids: tuple[str, ...] = ()
    removed: tuple[tuple[str, Flags], ...] = ()
    """Per rule, in order, which of `endpoint_ids` it removed."""
    degraded: tuple[str, ...] = ()
    """What was unknown and replaced by a default while deciding."""
    request: InferenceRequest | None = None
    """What was asked; `None` when it was refused before it was understood."""
    scores: tuple[tuple[str, float, Floats], ...] = ()
    """Scorer, its weight and its scores over the table's rows, of policies that have scorers."""
    shadows: tuple[ShadowChoice, ...] = ()
    inputs: dict[str, Any] | None = None
    """What `routing.pool.replay` needs, when it was asked for; see `routing.pool.recording`."""

    @property
    def wanted(self) -> str | None:
        """The endpoint that was chosen, also when it has no room; `None` when none was."""
        return self.destination if self.refusal is None else self.refusal.waits_for

    @property
    def rejected(self) -> dict[str, str]:
        """Endpoint id to the rule that removed it."""
        return {
            self.endpoint_ids[row]: rule
            for rule, rows in self.removed
            for row in np.flatnonzero(rows)
        }
