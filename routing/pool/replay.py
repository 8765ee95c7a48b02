"""A recorded decision decided again: as it was, under another policy or document, or with an
endpoint forced or left out. Pure: no clock, no traffic, nothing of the live router is touched.

The same code decides as in a router. Its knowledge is made from the record: the columns as they
were, the hits as they were found, the random numbers from where they stood. What a record cannot
hold (a tenant's limits, the turn of a stateful policy, endpoints beyond the listed ones) is named
in `Replayed.unknown`, and such endpoints take no part.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import MsgspecError

from routing.core.decision import Decision, Refusal
from routing.core.document import DocumentError, Policy, PolicyName, PoolDocument, Profile
from routing.core.openai import ParsedBody
from routing.core.request import InferenceRequest, RequestFacts
from routing.core.table import PRICED, Floats
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.recording import lucky
from routing.pool.router import PoolRouter
from routing.pool.shadow import GATEWAY

RECOMPUTED = ("policy-denied", "no-capacity", "pool-saturated", "model-not-found")
"""Refusals that follow from document and endpoints; others come from limits, which no record has.
"""
STATEFUL = ("round-robin", "sglang-cache-aware", "llm-d-weighted", "llm-d-token-aware", "dynamo")
"""Policies that remember more than the endpoints' columns; a record does not hold their memory."""
_TIE_SECONDS = 1e-9
_SENSELESS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MsgspecError)


class ReplayError(ValueError):
    """The record cannot be decided again; the message says what is missing."""


class Columns(msgspec.Struct, kw_only=True):
    """`inputs` of a record; see `routing.pool.recording`."""

    endpoints: list[str]
    instances: list[str]
    columns: dict[str, list[float | None]]
    hits: dict[str, list[float | None] | None] | None = None
    output_tokens: int | None = None
    homes: list[str] = []
    shared_tokens: float = 0.0
    doubt: float = 0.0
    pairs: list[dict[str, Any]] = []
    cold: list[str] = []
    degraded: dict[str, list[str]] = {}
    excluded: list[str] = []
    luck: str | None = None


class Asked(RequestFacts, frozen=True, kw_only=True):
    """`request` of a record: the facts and the sizes."""

    prompt_tokens: int
    max_tokens: int | None = None
    n: int = 1
    stream: bool = False
    has_exact_tokens: bool = False
    is_multimodal: bool = False
    uses_tools: bool = False
    has_output: bool = True
    can_split: bool = True


class Record(msgspec.Struct, kw_only=True):
    """The parts of a decision record that a replay reads."""

    id: str
    request_id: str
    policy: PolicyName | Literal["gateway"]
    decided_at: float
    destination: str | None
    prefill: str | None = None
    request: Asked | None = None
    refusal: dict[str, Any] | None = None
    inputs: Columns | None = None


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The decision, and what had to be assumed for it."""

    decision: Decision
    unknown: tuple[str, ...]


class _Recalled(Knowledge):
    """Knowledge as a record tells it. Time stands still in it."""

    def __init__(self, document: PoolDocument, record: Record, inputs: Columns) -> None:
        super().__init__(document, now=record.decided_at)
        self._inputs = inputs
        self._rows: list[int] = []
        self._places: list[int] = []
        for place, (name, instance) in enumerate(
            zip(inputs.endpoints, inputs.instances, strict=True)
        ):
            row = self.table.row_of.get(name, -1)
            if row >= 0 and self.table.instances[row].spec.instance == instance:
                self._rows.append(row)
                self._places.append(place)
        self.told = frozenset(self.table.ids[row] for row in self._rows)
        self._recall_columns()
        self._recall_breakers(now=record.decided_at)
        self._recall_pairs(now=record.decided_at)

    def _recall_columns(self) -> None:
        for name in PRICED:
            column, told = getattr(self.table, name), self._inputs.columns.get(name)
            if told is not None:
                unknown = -np.inf if name == "open_until" else np.nan
                column[self._rows] = self._column(told, unknown=unknown)
        self.table.has_cold = bool((self.table.warm_up_seconds > 0).any())

    def _column(self, told: Sequence[float | None], *, unknown: float = np.nan) -> Floats:
        if len(told) != len(self._inputs.endpoints):
            raise ReplayError("The columns of the record do not have the length of its endpoints.")
        values = [unknown if value is None else value for value in told]
        return np.array([values[place] for place in self._places], dtype=np.float64)

    def _recall_breakers(self, *, now: float) -> None:
        until = self.table.open_until.copy()
        for row in np.flatnonzero(until > -np.inf):
            self.breakers.fail(self.table.instances[row], "connect", now=now)
        self.table.open_until[:] = until

    def _recall_pairs(self, *, now: float) -> None:
        row_of = self.table.row_of
        for told in self._inputs.pairs:
            line = self.pairs.line_of.get(row_of.get(str(told.get("prefill")), -1))
            column = self.pairs.column_of.get(row_of.get(str(told.get("decode")), -1))
            if line is None or column is None:
                continue
            scale, until = told.get("scale"), told.get("open_until")
            ends = int(self.pairs.prefill_rows[line]), int(self.pairs.decode_rows[column])
            self.pairs.set_full(*ends, is_full=bool(told.get("is_full")))
            if isinstance(scale, int | float):
                self.pairs.scale[line, column] = scale
            if isinstance(until, int | float):
                self.pairs.set_open(*ends, until)
        for name in self._inputs.cold:
            self.pairs.set_cold(row_of.get(name, -1), is_cold=True)
        self.pairs.seconds_per_token = self.pairs.prior * self.pairs.scale

    def refresh(self, *, now: float) -> None:
        """Nothing passes: the columns are those of the moment."""

    def hits(self, request: InferenceRequest) -> Hits:
        """As they were found; endpoints that the record does not tell of hold nothing."""
        told = self._inputs.hits or {}
        return Hits(
            **{name: self._hits_of(name, told.get(name)) for name in Hits.__struct_fields__}
        )

    def _hits_of(self, name: str, told: list[float | None] | None) -> Any:
        if told is None and name not in ("indexed", "trusted"):
            return None
        column = np.zeros(len(self.table))
        if told is not None:
            column[self._rows] = self._column(told, unknown=0.0)
        return column

    def homes_of(self, request: InferenceRequest) -> tuple[tuple[int, ...], float]:
        """As its prefix lived then."""
        rows = (self.table.row_of.get(name) for name in self._inputs.homes)
        return tuple(row for row in rows if row is not None), self._inputs.shared_tokens

    def doubt(self, *, now: float) -> float:
        """As far as other routers were heard then."""
        return self._inputs.doubt

    def expected_output(self, request: InferenceRequest) -> int:
        """As it was expected."""
        told = self._inputs.output_tokens
        return super().expected_output(request) if told is None else told

    def degraded(self, row: int, *, now: float) -> tuple[str, ...]:
        """As it was known of this endpoint."""
        return tuple(self._inputs.degraded.get(self.table.ids[row], ()))


def read_record(record: Mapping[str, Any]) -> Record:
    """The parts that a replay needs. Raises ReplayError with the field that is wrong."""
    try:
        return msgspec.convert(record, Record)
    except msgspec.ValidationError as error:
        raise ReplayError(f"This is no decision record: {error}.") from error


def replay(
    record: Mapping[str, Any],
    document: PoolDocument,
    *,
    policy: PolicyName | None = None,
    force: str | None = None,
    remove: Sequence[str] = (),
    profiles: Sequence[Profile] | None = None,
) -> Replayed:
    """Decide a record again; without any change it gives the same decision.

    `force` leaves one destination, `remove` leaves endpoints out; neither overrules a hard filter.
    `profiles` are plugins for the policy `weighted`. Raises ReplayError when the record was kept
    without inputs, its values make no sense, or an endpoint is not in the document.
    """
    told = read_record(record)
    try:
        return _again(told, document, policy=policy, force=force, remove=remove, profiles=profiles)
    except (ReplayError, DocumentError):
        raise
    except _SENSELESS as error:
        # Anybody may hand in a record; its numbers go through the code that decides.
        raise ReplayError(f"The values of the record make no sense: {error}.") from error


def _again(
    told: Record,
    document: PoolDocument,
    *,
    policy: PolicyName | None,
    force: str | None,
    remove: Sequence[str],
    profiles: Sequence[Profile] | None,
) -> Replayed:
    if told.inputs is None or told.request is None:
        raise ReplayError(
            "The record was kept without its inputs, because decisions came faster than they are "
            "recorded in full. Choose one whose candidates are listed."
        )
    if profiles is not None:
        rules = Policy(name="weighted", profiles=tuple(profiles))
        document = msgspec.structs.replace(document, policy=rules)
    known = _Recalled(document, told, told.inputs)
    for name in (*remove, *([force] if force else [])):
        if name not in known.table.row_of:
            raise ReplayError(f"Endpoint '{name}' is not in document version {document.version}.")
    router = PoolRouter(document, seed=0, now=told.decided_at, known=known, id_prefix="replayed-")
    generator = lucky(told.inputs.luck or "")
    if generator is not None:
        router.draw_from(generator)
    wanted = policy or (document.policy.name if profiles is not None else told.policy)
    if wanted == GATEWAY:
        # Nobody knows its rules: what the document's own policy would have done is the question.
        wanted = document.policy.name
    out = _left_out(known, told.inputs, force=force, remove=remove)
    decision = router.decide(
        _request(told, told.request),
        now=told.decided_at,
        exclude=frozenset(out),
        policy=wanted,
        keep="always",
    )
    unknown = _unknown(known, told, wanted, decision)
    is_changed = bool(force or remove or profiles is not None)
    decision = _settled(decision, told, policy=wanted, is_changed=is_changed)
    return Replayed(decision=_relabelled(decision, out), unknown=unknown)


def _left_out(
    known: _Recalled, inputs: Columns, *, force: str | None, remove: Sequence[str]
) -> dict[str, str]:
    """Endpoint to the reason why this replay leaves it out, besides the hard filters."""
    table, out = known.table, {}
    for row, name in enumerate(table.ids):
        if name not in known.told and name != force:
            out[name] = "not-recorded"
        if name in inputs.excluded:
            out[name] = "excluded"
        if force is not None and name != force and table.answers[row]:
            out[name] = "not-forced"
        if name in remove:
            out[name] = "avoided"
    return out


def _request(told: Record, asked: Asked) -> InferenceRequest:
    """The request without its block keys: the hits stand for them."""
    facts = msgspec.structs.asdict(asked)
    sizes = {name: facts.pop(name) for name in ParsedBody.__struct_fields__ if name in facts}
    parsed = ParsedBody(
        **(sizes | {"model": asked.model}),
        include_usage=False,
        prompt_bytes=0,
        block_keys=np.zeros(0, dtype=np.uint64),
        chunk_tokens=1.0,
        user=None,
    )
    return InferenceRequest(
        **(facts | {"model": asked.model}),
        id=told.request_id,
        arrived_at=told.decided_at,
        parsed=parsed,
    )


def _unknown(known: _Recalled, told: Record, policy: str, decision: Decision) -> tuple[str, ...]:
    """What this answer had to do without."""
    found = []
    if told.refusal is not None and told.refusal.get("code") not in RECOMPUTED:
        found.append("limits-and-queue")
    if policy in STATEFUL:
        found.append(f"state-of-{policy}")
    if len(known.told) < len(known.table):
        found.append("endpoints-not-recorded")
    if decision.policy != "consort" and told.inputs is not None and told.inputs.luck is None:
        found.append("random-numbers")
    return tuple(found)


def _settled(decision: Decision, told: Record, *, policy: str, is_changed: bool) -> Decision:
    """Let what the record alone can know stand: a refusal by limits, a draw among equals, the
    choice of a policy whose state was not kept.
    """
    if told.refusal is not None and told.refusal.get("code") not in RECOMPUTED:
        refusal = msgspec.convert(told.refusal, Refusal)
        return msgspec.structs.replace(decision, refusal=refusal, destination=None, prefill=None)
    if is_changed or policy != told.policy or told.destination is None:
        return decision
    if policy in STATEFUL:
        return _with_destination(decision, told.destination, told.prefill)
    if decision.destination != told.destination and _is_equal(decision, told.destination):
        return _with_destination(decision, told.destination, told.prefill)
    return decision


def _is_equal(decision: Decision, other: str) -> bool:
    """Price and hit of another endpoint are those of the destination: only luck chose."""
    found, ids = decision.candidates, decision.endpoint_ids
    if found is None or found.terms is None or found.hit_tokens is None or other not in ids:
        return False
    here, there = ids.index(decision.destination or ""), ids.index(other)
    if there not in found.rows:
        return False
    totals, hits = found.terms.total, found.hit_tokens
    is_equal: bool = abs(totals[here] - totals[there]) <= _TIE_SECONDS
    return is_equal and bool(hits[here] == hits[there])


def _with_destination(decision: Decision, name: str, prefill: str | None) -> Decision:
    if decision.destination is None or name not in decision.endpoint_ids:
        return decision
    others = tuple(other for other in decision.fallbacks if other != name)
    return msgspec.structs.replace(decision, destination=name, prefill=prefill, fallbacks=others)


def _relabelled(decision: Decision, out: Mapping[str, str]) -> Decision:
    """The rule `excluded` split into the reasons of this replay."""
    ids = decision.endpoint_ids
    removed = []
    for rule, mask in decision.removed:
        if rule != "excluded":
            removed.append((rule, mask))
            continue
        for reason in dict.fromkeys(out.values()):
            part = mask & np.array([out.get(name) == reason for name in ids], dtype=np.bool_)
            if part.any():
                removed.append((reason, part))
    return msgspec.structs.replace(decision, removed=tuple(removed))
