"""The outcome of a choice and its record: what was chosen, at which price, and what was out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why no endpoint was chosen: 403 forbidden, 404 unknown, 429 taken, 503 none."""

    status: int
    code: str
    message: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What the chosen endpoint is expected to do; NaN where the policy does not predict."""

    hit_tokens: int = 0
    """Prompt tokens expected in the cache of the endpoint that computes the prompt."""
    uncached_tokens: int = 0
    ttft_seconds: float = float("nan")
    tpot_seconds: float = float("nan")
    output_tokens: int = 0
    destination_hit_tokens: int = 0
    """Prompt tokens expected in the destination's own cache; with a pair the rest is moved."""
    wait_seconds: float = float("nan")
    transfer_seconds: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Every endpoint that passed the filters, with its price term by term.

    `terms` are arrays of shape `(len(ids),)` in seconds; policies without a price have none.
    """

    ids: tuple[str, ...] = ()
    prefill_ids: tuple[str | None, ...] = ()
    terms: Mapping[str, Floats] = field(default_factory=dict)
    hit_tokens: Floats | None = None
    signal_age_seconds: Floats | None = None
    """Seconds since the engine was last heard; NaN when it never was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
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
    predicted: Predicted = field(default_factory=Predicted)
    margin_seconds: float | None = None
    """How much dearer the runner-up is; `None` without a price or without a runner-up."""
    runner_up: str | None = None
    reason: str = ""
    """The rule that decided, in a few words."""
    candidates: Candidates = field(default_factory=Candidates)
    endpoint_ids: tuple[str, ...] = ()
    removed: tuple[tuple[str, Flags], ...] = ()
    """Per rule, in order, which of `endpoint_ids` it removed."""
    degraded: tuple[str, ...] = ()
    """What was unknown and replaced by a default while deciding."""

    @property
    def rejected(self) -> dict[str, str]:
        """Endpoint id to the rule that removed it."""
        return {
            self.endpoint_ids[row]: rule
            for rule, rows in self.removed
            for row in np.flatnonzero(rows)
        }

    def record(self) -> dict[str, Any]:
        """JSON-able record with every candidate's terms in seconds; no prompt text in it."""
        predicted = {
            name: _number(getattr(self.predicted, name)) for name in Predicted.__dataclass_fields__
        }
        refusal = self.refusal and {
            name: getattr(self.refusal, name) for name in Refusal.__dataclass_fields__
        }
        return {
            "id": self.id,
            "request_id": self.request_id,
            "policy": self.policy,
            "pool": self.pool,
            "document_version": self.document_version,
            "decided_at": self.decided_at,
            "destination": self.destination,
            "fallbacks": list(self.fallbacks),
            "prefill": self.prefill,
            "refusal": refusal,
            "predicted": predicted,
            "margin_seconds": _number(self.margin_seconds),
            "runner_up": self.runner_up,
            "reason": self.reason,
            "candidates": _candidate_rows(self.candidates),
            "rejected": [
                {"endpoint": endpoint, "rule": rule} for endpoint, rule in self.rejected.items()
            ],
            "degraded": list(self.degraded),
        }


def _candidate_rows(candidates: Candidates) -> list[dict[str, Any]]:
    hits, ages = candidates.hit_tokens, candidates.signal_age_seconds
    return [
        {
            "endpoint": endpoint,
            "prefill": candidates.prefill_ids[row] if candidates.prefill_ids else None,
            "hit_tokens": None if hits is None else _number(hits[row]),
            "signal_age_seconds": None if ages is None else _number(ages[row]),
            "terms": {name: _number(values[row]) for name, values in candidates.terms.items()},
        }
        for row, endpoint in enumerate(candidates.ids)
    ]


def _number(value: Any) -> int | float | None:
    """JSON has no NaN and no infinity: both are written as null, "no data"."""
    if value is None or isinstance(value, int):
        return value
    number = float(value)
    return round(number, 6) if np.isfinite(number) else None
