"""The decision maker of one pool: a document, what is known about its endpoints, and a choice.

Single-threaded and pure: time comes in as `now` (seconds on one monotonic clock), randomness from
the seed. Every change between two decisions goes through a method here.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from routing.core.decision import Candidates, Decision
from routing.core.document import PoolDocument, TenantSpec
from routing.core.lease import Lease
from routing.core.pricing import Demand
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool import admission, learning, objective, selection
from routing.pool.baselines import Baselines
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Knowledge
from routing.pool.objective import Priced
from routing.pool.snapshot import snapshot_of
from routing.producers.breakers import FailureKind

Outcome = Literal["ok", "error", "aborted"]


class StaleDecisionError(LookupError):
    """A decision names an endpoint that a later document removed; decide again."""


class PoolRouter:
    """See the module; `apply` swaps the document in one step and keeps what is still true."""

    def __init__(self, document: PoolDocument, *, seed: int, now: float) -> None:
        self._rng = np.random.default_rng(seed)
        self._baselines = Baselines(self._rng)
        self._known = Knowledge(document, now=now)
        self._decisions = 0

    @property
    def document(self) -> PoolDocument:
        """The document in force."""
        return self._known.document

    @property
    def leases_open(self) -> int:
        """Requests begun and not ended."""
        return len(self._known.leases)

    def bytes_per_token(self, model: str) -> float:
        """Learned figure to hand to `parse_request`; the document's first guess at the start."""
        return self._known.bytes_per_token.of(model)

    def apply(self, document: PoolDocument, *, now: float) -> None:
        """Swap the document. Knowledge of unchanged (id, instance) stays; the rest is forgotten."""
        self._known.install(document, now=now)

    def reset_knowledge(self, *, now: float) -> None:
        """Back to class priors and empty caches; leases stay, their requests are running."""
        self._known.forget()

    def decide(
        self,
        request: InferenceRequest,
        *,
        now: float,
        exclude: frozenset[str] = frozenset(),
        policy: str | None = None,
    ) -> Decision:
        """Choose a destination (and a prefill endpoint), or refuse. Changes no load.

        `exclude` are endpoint ids that failed this request already; `policy` overrides the
        document's.
        """
        known = self._known
        self._decisions += 1
        known.refresh(now=now)
        draft = _Draft(
            id=f"d-{self._decisions}-{request.id}",
            request=request,
            policy=policy or known.document.policy.name,
            now=now,
            jurisdictions=_jurisdictions(known.tenants.spec(request.tenant), request),
        )
        refusal = admission.refusal_of_request(known, request, is_retry=bool(exclude), now=now)
        if refusal is not None:
            return self._decision(draft, refusal=refusal)
        draft.eligible = known.rules.of(
            draft.jurisdictions,
            prompt_tokens=request.parsed.prompt_tokens,
            exclude=exclude,
            has_breakers=len(known.breakers) > 0,
            now=now,
        )
        refusal = admission.refusal_of_pool(draft.eligible)
        if refusal is not None:
            return self._decision(draft, refusal=refusal)
        return self._priced_decision(draft, draft.eligible)

    def _priced_decision(self, draft: "_Draft", eligible: Eligibility) -> Decision:
        known, request = self._known, draft.request
        hits = known.hits(request)
        demand = Demand(
            prompt_tokens=request.parsed.prompt_tokens,
            output_tokens=known.expected_output(request),
            hit_tokens=hits.trusted,
        )
        one_place = draft.jurisdictions is not None
        priced = objective.price(known, demand, eligible, one_place=one_place, now=draft.now)
        draft.priced = priced
        refusal = admission.refusal_of_wait(
            known.document, request, wait=priced.terms.cheapest_wait(priced.rows)
        )
        if refusal is not None:
            return self._decision(draft, refusal=refusal)
        if draft.policy == "consort":
            chosen = selection.by_price(known, priced, self._rng)
        else:
            chosen = selection.by_rule(
                known,
                eligible,
                self._baselines,
                policy=draft.policy,
                one_place=one_place,
                now=draft.now,
            )
        ids = known.table.ids
        return self._decision(
            draft,
            destination=ids[chosen.row],
            fallbacks=tuple(ids[row] for row in chosen.fallbacks),
            prefill=None if chosen.prefill < 0 else ids[chosen.prefill],
            predicted=selection.predict(priced, chosen, hits, demand),
            margin_seconds=chosen.margin_seconds,
            runner_up=None if chosen.runner_up is None else ids[chosen.runner_up],
            reason=chosen.reason,
            degraded=known.degraded(chosen.row, now=draft.now),
        )

    def _decision(self, draft: "_Draft", **outcome: Any) -> Decision:
        table, document, priced = self._known.table, self._known.document, draft.priced
        candidates = None
        if priced is not None:
            candidates = Candidates(
                rows=priced.rows,
                terms=priced.terms,
                hit_tokens=priced.hit_tokens,
                signal_age_seconds=draft.now - table.observed_at,
            )
        return Decision(
            id=draft.id,
            request_id=draft.request.id,
            policy=draft.policy,
            pool=document.pool,
            document_version=document.version,
            decided_at=draft.now,
            endpoint_ids=table.ids,
            removed=() if draft.eligible is None else draft.eligible.removed,
            candidates=candidates,
            **outcome,
        )

    def begin(self, request: InferenceRequest, decision: Decision, *, now: float) -> Lease:
        """Open the lease of a decision with a destination; its prompt counts as cached there.

        Raises StaleDecisionError when a document applied since removed one of its endpoints.
        """
        known = self._known
        destination = self._instance(decision.destination)
        prefill = None if decision.prefill is None else self._instance(decision.prefill)
        lease = known.leases.begin(
            known.table, request, decision, destination=destination, prefill=prefill, now=now
        )
        known.tenants.take(request.tenant, now=now)
        learning.hope(known, lease)
        return lease

    def _instance(self, endpoint_id: str | None) -> Instance:
        row = self._known.table.row_of.get(endpoint_id or "")
        if row is None:
            raise StaleDecisionError(
                f"Endpoint '{endpoint_id}' is not in document version {self.document.version}."
            )
        return self._known.table.instances[row]

    def prefill_done(
        self, lease: Lease, *, now: float, prompt_tokens: int | None, cached_tokens: int | None
    ) -> None:
        """The prefill leg answered, with the engine's own counts (`None` when it gave none)."""
        if lease.is_open and lease.prefill_done_at is None:
            learning.after_prefill(
                self._known,
                lease,
                now=now,
                prompt_tokens=prompt_tokens,
                cached_tokens=cached_tokens,
            )

    def first_token(self, lease: Lease, *, now: float) -> None:
        """The first output token came from the destination; later calls do nothing."""
        if lease.is_open and lease.first_token_at is None:
            learning.after_first_token(self._known, lease, now=now)

    def tokens(self, lease: Lease, count: int, *, now: float) -> None:
        """`count` more output tokens came."""
        if lease.is_open:
            self._known.leases.tokens(self._known.table, lease, count)

    def end(
        self,
        lease: Lease,
        *,
        now: float,
        outcome: Outcome,
        prompt_tokens: int | None = None,
        cached_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """Close a lease, exactly once; a second call does nothing. Learns when `outcome` is ok.

        `cached_tokens` is what the destination found in its own cache; with a pair it is ignored,
        because pulled tokens are reported as cached.
        """
        if not lease.is_open:
            return
        counts = learning.Counts(prompt_tokens, cached_tokens, completion_tokens)
        if outcome == "ok":
            learning.after_end(self._known, lease, counts, now=now)
        elif lease.first_token_at is None:
            learning.withdraw(self._known, lease)
        self._known.leases.end(self._known.table, lease, now=now, is_answered=outcome == "ok")

    def failed(
        self,
        endpoint_id: str,
        kind: FailureKind,
        *,
        now: float,
        prefill_id: str | None = None,
    ) -> None:
        """An attempt failed, not by the client's fault; with `prefill_id` the pair is counted.

        An endpoint that is not in the document any more is ignored.
        """
        known = self._known
        row = known.table.row_of.get(endpoint_id)
        other = known.table.row_of.get(prefill_id) if prefill_id is not None else None
        if row is None or (prefill_id is not None and other is None):
            return
        instance = known.table.instances[row]
        if other is None:
            known.table.open_until[row] = known.breakers.fail(instance, kind, now=now)
        else:
            pair = (known.table.instances[other], instance)
            known.pairs.set_open(other, row, known.pair_breakers.fail(pair, kind, now=now))

    def observe(self, endpoint_id: str, signals: EngineSignals, *, now: float) -> None:
        """Take one reading of an engine's metrics; unknown endpoints are ignored."""
        known = self._known
        row = known.table.row_of.get(endpoint_id)
        if row is not None:
            learning.after_reading(known, known.table.instances[row], signals, now=now)

    def snapshot(self, *, now: float) -> dict[str, Any]:
        """JSON-able state for the admin port; unknown numbers are null."""
        return snapshot_of(self._known, now=now)


@dataclass(slots=True)
class _Draft:
    """What a decision is known to be while it is made."""

    id: str
    request: InferenceRequest
    policy: str
    now: float
    jurisdictions: tuple[str, ...] | None
    eligible: Eligibility | None = None
    priced: Priced | None = None


def _jurisdictions(limits: TenantSpec | None, request: InferenceRequest) -> tuple[str, ...] | None:
    """Where a request may go: what both the request and the tenant's entry allow."""
    ours = None if limits is None else limits.jurisdictions
    if ours is None or request.jurisdictions is None:
        return request.jurisdictions if ours is None else ours
    return tuple(place for place in ours if place in request.jurisdictions)
