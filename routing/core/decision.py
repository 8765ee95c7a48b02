"""The outcome of a choice and its record: what was chosen, at which price, and what was out."""

from typing import Any

import msgspec
import numpy as np

from routing.core.pricing import BestTerms, Rows
from routing.core.table import Flags, Floats


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why no endpoint was chosen: 403 forbidden, 404 unknown, 429 taken, 503 none."""

    status: int
    code: str
    message: str
    retry_after_seconds: float | None = None


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

    @property
    def rejected(self) -> dict[str, str]:
        """Endpoint id to the rule that removed it."""
        return {
            self.endpoint_ids[row]: rule
            for rule, rows in self.removed
            for row in np.flatnonzero(rows)
        }

    def record(self, *, with_candidates: bool = True) -> dict[str, Any]:
        """JSON-able record with every candidate's terms in seconds; no prompt text in it.

        `candidates` is null when they are left out: they are most of the work and of the size.
        """
        predicted = {
            name: _number(getattr(self.predicted, name)) for name in Predicted.__struct_fields__
        }
        refusal = self.refusal and {
            name: getattr(self.refusal, name) for name in Refusal.__struct_fields__
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
            "candidates": self._candidate_rows() if with_candidates else None,
            "rejected": [
                {"endpoint": endpoint, "rule": rule} for endpoint, rule in self.rejected.items()
            ],
            "degraded": list(self.degraded),
        }

    def _candidate_rows(self) -> list[dict[str, Any]]:
        found = self.candidates
        return [] if found is None else [self._candidate(found, int(row)) for row in found.rows]

    def _candidate(self, found: Candidates, row: int) -> dict[str, Any]:
        prefill, terms = -1, {}
        if found.terms is not None:
            way, column = found.terms.at(row)
            prefill, terms = found.terms.prefill_at(row), way.by_name(column)
        return {
            "endpoint": self.endpoint_ids[row],
            "prefill": None if prefill < 0 else self.endpoint_ids[prefill],
            "hit_tokens": _at(found.hit_tokens, row),
            "signal_age_seconds": _at(found.signal_age_seconds, row),
            "terms": {name: _number(value) for name, value in terms.items()},
        }


def _at(column: Floats | None, row: int) -> int | float | None:
    return None if column is None else _number(column[row])


def _number(value: Any) -> int | float | None:
    """JSON has no NaN and no infinity: both are written as null, "no data"."""
    if value is None or isinstance(value, int):
        return value
    number = float(value)
    return round(number, 6) if np.isfinite(number) else None
