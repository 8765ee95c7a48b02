"""The endpoint table: one numpy column per signal, one row per endpoint, updated in place.

NaN is unknown. Rows follow the document's order; an `Instance` keeps its identity while its row
moves when another document is applied. What leases change are whole numbers; they are kept as
floats, which add and subtract them exactly, because mixing integers into the price costs time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from routing.core.adapters import Adapters
from routing.core.document import EndpointSpec, PoolDocument, SpeedPrior
from routing.core.speed_model import COLUMNS as SPEED_COLUMNS
from routing.core.speed_model import coefficients

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
    "others_tokens",
    "observed_at",
    "reported_capacity_tokens",
    "reported_block_tokens",
    "trust",
    "open_until",
    "first_seen_at",
    *SPEED_COLUMNS,
    "stretch",
    "arrival_rate",
    "prompt_rate",
    "prompt_fading",
    "arriving_seconds",
    "load_factor",
    "warm_up_seconds",
    "prompt_moved_at",
    "head_tokens",
    "unstarted",
    "outgoing_tokens",
    "incoming_tokens",
    "lacking",
    "sequence_integral",
    "context_integral",
    "prefill_done_tokens",
    "integrated_at",
)

_FOR_LEARNING: Final = (
    "reported_capacity_tokens",
    "reported_block_tokens",
    "sequence_integral",
    "context_integral",
    "prefill_done_tokens",
    "integrated_at",
)
_BY_LEASES: Final = (
    *_KEPT_COUNTS,
    "others",
    "prompt_moved_at",
    "head_tokens",
    "unstarted",
    *_FOR_LEARNING[2:],
)
PRICED: Final = (
    *(name for name in (*_KEPT_COUNTS, *_KEPT_FLOATS) if name not in _FOR_LEARNING),
    "capacity_tokens",
    "block_tokens",
)
"""Columns that a price may read, which a replay therefore needs."""


@dataclass(slots=True, eq=False)
class Instance:
    """One endpoint in one life of its process. `row` is -1 once it is gone."""

    spec: EndpointSpec
    row: int
    slot: int
    """Position in the prefix index, stable while the instance lives."""
    adapters: Adapters = field(default_factory=Adapters)

    @property
    def is_alive(self) -> bool:
        return self.row >= 0


class EndpointTable:
    """Columns of shape `(n,)`; see the comments for units."""

    # Open leases of this router.
    requests: Counts
    sequences: Counts
    """Requests whose output is or will be made here."""
    unstarted: Counts
    """Those of them whose first token is not known to have come; other routers do not tell."""
    prefill_requests: Counts
    prefill_tokens: Counts
    """Prompt tokens sent here and not known to be computed."""
    context_tokens: Counts
    """Expected context of the open sequences."""
    remaining_tokens: Counts
    """Expected output still to come."""
    private_tokens: Counts
    """KV tokens that open sequences hold beyond what they found in the cache."""
    outgoing_tokens: Counts
    incoming_tokens: Counts
    """KV tokens of this router's pairs that are to be moved from here, or to here; other routers do
    not tell theirs."""
    # What engines report; NaN when unknown.
    running: Floats
    waiting: Floats
    kv_usage: Floats
    others: Floats
    """Requests in the engine that this router did not send."""
    others_waiting: Floats
    """Those of them that wait."""
    others_tokens: Floats
    """Their prompt tokens that wait, where the engine counts tokens; else NaN."""
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
    prefill_seconds_per_token_and_context: Floats
    """Times the mean context of a token, for attention."""
    prefill_steps_per_token: Floats
    """Steps of the running batch that a prompt's chunks go through, per token."""
    first_step_factor: Floats
    """Steps that pass until a computed prompt shows its first token."""
    network_seconds: Floats
    """The way there and back, and what happens to a request before its prompt."""
    step_seconds: Floats
    step_seconds_per_sequence: Floats
    step_seconds_per_context_token: Floats
    stretch: Floats
    """How much longer an output takes because prompts are computed in between; 1 without any."""
    arrival_rate: Floats
    """Requests per second that are expected to come, all routers' together."""
    prompt_rate: Floats
    """Prompt tokens to compute per second that come with them."""
    prompt_fading: Floats
    """How fast the latter fades while caches fill, per second; 0 in a steady state."""
    arriving_seconds: Floats
    """How long requests have been coming since the pool was idle."""
    load_factor: Floats
    """Learned scale on the stated time to load KV from a tier."""
    warm_up_seconds: Floats
    """What the first requests of a fresh process pay; 0 once it has answered."""
    prompt_moved_at: Floats
    """When the prompt that is computed at present probably began."""
    head_tokens: Floats
    """Tokens to compute of that prompt, the oldest of ours that is not done; 0 where there is none.
    """
    lacking: Floats
    """Fair share of the pool's load less what an endpoint carries, as shares of the whole."""
    # Time integrals of what is decoded, from which a request's mean batch is read when it ends.
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
        self.cells = {
            name: cast("memoryview[float]", memoryview(getattr(self, name))) for name in _BY_LEASES
        }
        """The columns that each step of a lease changes: one number of a view costs a third."""
        self.others[:] = 0.0
        self.others_waiting[:] = 0.0
        self.trust[:] = 1.0
        self.open_until[:] = -np.inf
        self.first_seen_at[:] = now
        self.stretch[:] = 1.0
        for name in ("arrival_rate", "prompt_rate", "prompt_fading", "arriving_seconds"):
            getattr(self, name)[:] = 0.0
        self.load_factor[:] = 1.0
        self.warm_up_seconds[:] = 0.0
        self.prompt_moved_at[:] = now
        self.head_tokens[:] = self.unstarted[:] = 0.0
        self.outgoing_tokens[:] = self.incoming_tokens[:] = 0.0
        self.lacking[:] = 0.0
        self.has_cold = False
        """Some row has `warm_up_seconds`."""
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
        self.has_slots_in_order = bool((self.slots == np.arange(len(specs))).all())
        """Slots are row numbers."""
        self._look_at_block_sizes()
        self.jurisdictions = tuple(spec.jurisdiction for spec in specs)

    def __len__(self) -> int:
        return len(self.instances)

    def set_speeds(self, row: int, speeds: SpeedPrior) -> None:
        """Write what an endpoint is expected to do; the columns are seconds, not rates."""
        for name, value in zip(SPEED_COLUMNS, coefficients(speeds), strict=True):
            getattr(self, name)[row] = value

    def adopt(self, old: "EndpointTable", rows: Mapping[int, int]) -> None:
        """Copy everything learned and counted from old rows to rows here (`{new: old}`)."""
        if not rows:
            return
        here, there = list(rows.keys()), list(rows.values())
        for name in (*_KEPT_COUNTS, *_KEPT_FLOATS):
            getattr(self, name)[here] = getattr(old, name)[there]
        self.has_cold = bool((self.warm_up_seconds > 0).any())
        known = ~np.isnan(self.reported_capacity_tokens)
        self.capacity_tokens[known] = self.reported_capacity_tokens[known]
        known = ~np.isnan(self.reported_block_tokens)
        self.block_tokens[known] = self.reported_block_tokens[known]
        self._look_at_block_sizes()

    def report_capacity(self, row: int, tokens: int) -> None:
        """The engine's own figure, which goes before the document's."""
        self.reported_capacity_tokens[row] = tokens
        self.capacity_tokens[row] = tokens

    def report_block_size(self, row: int, tokens: int) -> None:
        """The engine's own figure, which goes before the document's."""
        self.reported_block_tokens[row] = tokens
        if self.block_tokens[row] != tokens:
            self.block_tokens[row] = tokens
            self._look_at_block_sizes()

    def _look_at_block_sizes(self) -> None:
        first = float(self.block_tokens[0]) if len(self) else math.nan
        is_same = bool((self.block_tokens == first).all())
        self.block_size: float | None = first if is_same else None
        """Tokens of all endpoints' blocks; `None` where they differ."""

    def integrate(self, row: int, now: float) -> None:
        """Bring the time integrals of one row up to `now`, before its counts change."""
        cells = self.cells
        elapsed = now - cells["integrated_at"][row]
        if elapsed > 0:
            sequences = cells["sequences"][row]
            decoding = max(sequences - cells["unstarted"][row], 0.0)
            if decoding > 0:
                cells["sequence_integral"][row] += elapsed * decoding
                context = cells["context_tokens"][row] * decoding / sequences
                cells["context_integral"][row] += elapsed * context
            cells["integrated_at"][row] = now


def _floats(specs: list[EndpointSpec], name: str) -> Floats:
    def number(value: Any) -> float:
        return float("nan") if value is None else float(value)

    return np.array([number(getattr(spec, name)) for spec in specs], dtype=np.float64)
