"""The endpoint table: one numpy column per signal, one row per endpoint, updated in place.

NaN is unknown. Rows follow the document's order; an `Instance` keeps its identity while its row
moves when another document is applied. What leases change are whole numbers; they are kept as
floats, which add and subtract them exactly, because mixing integers into the price costs time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from routing.core.document import EndpointSpec, PoolDocument, SpeedPrior

Floats = NDArray[np.float64]
Counts = NDArray[np.float64]
"""Whole numbers."""
Flags = NDArray[np.bool_]

_KEPT_COUNTS: Final = (
    "requests",
    "sequences",
    "prefill_requests",
    "prefill_tokens",
    "context_tokens",
    "remaining_tokens",
    "private_tokens",
)
_KEPT_FLOATS: Final = (
    "running",
    "waiting",
    "kv_usage",
    "others",
    "others_waiting",
    "observed_at",
    "reported_capacity_tokens",
    "reported_block_tokens",
    "trust",
    "open_until",
    "first_seen_at",
    "prefill_seconds_per_token",
    "first_step_factor",
    "step_seconds",
    "step_seconds_per_sequence",
    "step_seconds_per_context_token",
    "sequence_integral",
    "context_integral",
    "prefill_done_tokens",
    "integrated_at",
)


@dataclass(slots=True, eq=False)
class Instance:
    """One endpoint in one life of its process. `row` is -1 once it is gone."""

    spec: EndpointSpec
    row: int
    slot: int
    """Position in the prefix index, stable while the instance lives."""

    @property
    def is_alive(self) -> bool:
        return self.row >= 0


class EndpointTable:
    """Columns of shape `(n,)`; see the comments for units."""

    # Open leases of this router.
    requests: Counts
    sequences: Counts
    """Requests whose output is or will be made here."""
    prefill_requests: Counts
    prefill_tokens: Counts
    """Prompt tokens sent here and not known to be computed."""
    context_tokens: Counts
    """Expected context of the open sequences."""
    remaining_tokens: Counts
    """Expected output still to come."""
    private_tokens: Counts
    """KV tokens that open sequences hold beyond what they found in the cache."""
    # What engines report; NaN when unknown.
    running: Floats
    waiting: Floats
    kv_usage: Floats
    others: Floats
    """Requests in the engine that this router did not send."""
    others_waiting: Floats
    """Those of them that wait."""
    observed_at: Floats
    reported_block_tokens: Floats
    reported_capacity_tokens: Floats
    capacity_tokens: Floats
    """KV tokens: what the engine reports, else the document; NaN if neither does."""
    block_tokens: Floats
    """Tokens per cache block: what the engine reports (plugins force their own), else the document.
    """
    # What this router knows.
    trust: Floats
    open_until: Floats
    """Time until which the breaker keeps the endpoint out; -inf when closed."""
    first_seen_at: Floats
    prefill_seconds_per_token: Floats
    first_step_factor: Floats
    """Steps that pass until a computed prompt shows its first token."""
    step_seconds: Floats
    step_seconds_per_sequence: Floats
    step_seconds_per_context_token: Floats
    # Time integrals, from which a request's mean concurrency is read when it ends.
    sequence_integral: Floats
    context_integral: Floats
    prefill_done_tokens: Floats
    integrated_at: Floats

    def __init__(self, document: PoolDocument, instances: list[Instance], *, now: float) -> None:
        """Fresh columns with class priors; `adopt` then brings over what is known."""
        count = len(instances)
        self.instances = tuple(instances)
        self.ids = tuple(instance.spec.id for instance in instances)
        self.row_of = {endpoint: row for row, endpoint in enumerate(self.ids)}
        for name in _KEPT_COUNTS:
            setattr(self, name, np.zeros(count))
        for name in _KEPT_FLOATS:
            setattr(self, name, np.full(count, np.nan))
        self.others[:] = 0.0
        self.others_waiting[:] = 0.0
        self.trust[:] = 1.0
        self.open_until[:] = -np.inf
        self.first_seen_at[:] = now
        self.sequence_integral[:] = 0.0
        self.context_integral[:] = 0.0
        self.prefill_done_tokens[:] = 0.0
        self.integrated_at[:] = now
        self._fill_static(document)
        for row, instance in enumerate(instances):
            self.set_speeds(row, document.speed_classes[instance.spec.speed_class])

    def _fill_static(self, document: PoolDocument) -> None:
        specs = [instance.spec for instance in self.instances]
        self.slots = np.array([instance.slot for instance in self.instances], dtype=np.intp)
        self.answers: Flags = np.array([spec.role != "prefill" for spec in specs], dtype=np.bool_)
        self.is_prefill: Flags = np.array(
            [spec.role == "prefill" for spec in specs], dtype=np.bool_
        )
        self.is_decode: Flags = np.array([spec.role == "decode" for spec in specs], dtype=np.bool_)
        self.is_ready: Flags = np.array([spec.state == "ready" for spec in specs], dtype=np.bool_)
        self.max_sequences = _floats(specs, "max_sequences")
        self.max_model_len = np.fmin(_floats(specs, "max_model_len"), np.inf)
        self.shortest_model_len = float(self.max_model_len.min(initial=np.inf))
        self.capacity_tokens = _floats(specs, "kv_capacity_tokens")
        self.block_tokens = _floats(specs, "block_size_tokens")
        self.ramp_seconds = _floats(specs, "ramp_seconds")
        self.has_ramp = bool((self.ramp_seconds > 0).any())
        self.price_per_second = _floats(specs, "price_per_hour") / 3600
        self.jurisdictions = tuple(spec.jurisdiction for spec in specs)

    def __len__(self) -> int:
        return len(self.instances)

    def set_speeds(self, row: int, speeds: SpeedPrior) -> None:
        """Write what an endpoint is expected to do; the columns are seconds, not rates."""
        self.prefill_seconds_per_token[row] = 1.0 / speeds.prefill_tokens_per_second
        self.first_step_factor[row] = 1.0
        self.step_seconds[row] = speeds.step_seconds
        self.step_seconds_per_sequence[row] = speeds.step_seconds_per_sequence
        self.step_seconds_per_context_token[row] = speeds.step_seconds_per_context_token

    def adopt(self, old: "EndpointTable", rows: Mapping[int, int]) -> None:
        """Copy everything learned and counted from old rows to rows here (`{new: old}`)."""
        if not rows:
            return
        here, there = list(rows.keys()), list(rows.values())
        for name in (*_KEPT_COUNTS, *_KEPT_FLOATS):
            getattr(self, name)[here] = getattr(old, name)[there]
        known = ~np.isnan(self.reported_capacity_tokens)
        self.capacity_tokens[known] = self.reported_capacity_tokens[known]
        known = ~np.isnan(self.reported_block_tokens)
        self.block_tokens[known] = self.reported_block_tokens[known]

    def report_capacity(self, row: int, tokens: int) -> None:
        """The engine's own figure, which goes before the document's."""
        self.reported_capacity_tokens[row] = tokens
        self.capacity_tokens[row] = tokens

    def report_block_size(self, row: int, tokens: int) -> None:
        """The engine's own figure, which goes before the document's."""
        self.reported_block_tokens[row] = tokens
        self.block_tokens[row] = tokens

    def integrate(self, row: int, now: float) -> None:
        """Bring the time integrals of one row up to `now`, before its counts change."""
        elapsed = now - self.integrated_at[row]
        if elapsed > 0:
            self.sequence_integral[row] += elapsed * self.sequences[row]
            self.context_integral[row] += elapsed * self.context_tokens[row]
            self.integrated_at[row] = now


def _floats(specs: list[EndpointSpec], name: str) -> Floats:
    def number(value: Any) -> float:
        return float("nan") if value is None else float(value)

    return np.array([number(getattr(spec, name)) for spec in specs], dtype=np.float64)
