"""The decision maker of one pool: a document, what is known about its endpoints, and a choice.

Single-threaded and pure: time comes in as `now` (seconds on one monotonic clock), randomness from
the seed. Every change between two decisions goes through a method here.
"""

from dataclasses import replace
from typing import Any, Literal

import msgspec
import numpy as np

from routing.core.decision import Candidates, Decision, Refusal, ShadowChoice
from routing.core.document import PoolDocument
from routing.core.lease import Lease
from routing.core.pricing import Demand
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.pool import admission, handover, learning, objective, pace, recording, selection
from routing.pool.decision_ids import DecisionIds
from routing.pool.eligibility import Eligibility, residency_of
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.objective import Priced
from routing.pool.observing import Observing
from routing.pool.peering import Peering
from routing.pool.persistence import SpeedMemory
from routing.pool.policy import Ask, Policies
from routing.pool.recording import Keep
from routing.pool.shadow import Shadows
from routing.pool.snapshot import snapshot_of
from routing.pool.unseen import UnseenAnswers
from routing.pool.waiting import WaitingRequests
from routing.pool.warmth import Warmth
from routing.producers.breakers import FailureKind

Outcome = Literal["ok", "error", "aborted", "unseen"]


class StaleDecisionError(LookupError):
    """A decision names an endpoint that a later document removed; decide again."""


class PoolRouter:
    """See the module; `apply` swaps the document in one step and keeps what is still true."""

    def __init__(
        self,
        document: PoolDocument,
        *,
        seed: int,
        now: float,
        known: Knowledge | None = None,
        id_prefix: str = "",
    ) -> None:
        """`known` starts from knowledge made elsewhere, as a replay does; see `DecisionIds`."""
        self._rng = np.random.default_rng(seed)
        self.policies = Policies(document)
        self.shadows = Shadows(document, seed=seed)
        self._known = known or Knowledge(document, now=now)
        self.caches = self._known.caches
        self.ids = DecisionIds(id_prefix)
        self.observing = Observing(self._known, self.policies, self.shadows, self.ids)
        self.warmth = Warmth(self._known)
        self.queue = WaitingRequests(self._known, self.decide)
        """Requests that wait in the router, and what those inside hold of their limits."""
        self.peers = Peering(self._known)
        self.unseen = UnseenAnswers(self._known)
        self.speeds = SpeedMemory(self._known)

    @property
    def document(self) -> PoolDocument:
        """The document in force."""
        return self._known.document

    @property
    def leases_open(self) -> int:
        """Requests begun and not ended."""
        return len(self._known.leases)

    def sample_rate_of(self, tenant: str) -> float | None:
        """Share of a tenant's ordinary decisions to record; `None` is the pool's."""
        limits = self._known.tenants.spec(tenant)
        return None if limits is None else limits.sample_rate

    def bytes_per_token(self, model: str) -> float:
        """Learned figure to hand to `parse_request`; the document's first guess at the start."""
        return self._known.bytes_per_token.of(model)

    def apply(self, document: PoolDocument, *, now: float) -> None:
        """Swap the document. Knowledge of unchanged (id, instance) stays; the rest is forgotten."""
        self.policies.install(document)
        self.shadows.install(document)
        self._known.install(document, now=now)
        self.queue.apply(document)

    def draw_from(self, rng: np.random.Generator) -> None:
        """Take random numbers from another generator, as a replay does."""
        self._rng = rng

    def reset_knowledge(self, *, now: float) -> None:
        """Back to class priors and empty caches; leases stay, their requests are running."""
        self._known.forget()
        self.policies.forget()

    def decide(
        self,
        request: InferenceRequest,
        *,
        now: float,
        exclude: frozenset[str] = frozenset(),
        policy: str | None = None,
        keep: Keep = None,
    ) -> Decision:
        """Choose a destination (and a prefill endpoint), or refuse. Changes no load.

        `exclude` are endpoint ids that failed this request already; `policy` overrides the
        document's. `keep` says whether the decision holds what a replay needs.
        """
        known = self._known
        known.refresh(now=now)
        draft = _Draft(
            id=self.ids.next(),
            request=request,
            policy=policy or known.document.policy.name,
            now=now,
            exclude=exclude,
            keep=keep,
        )
        if keep == "always":
            draft.luck = recording.luck(self._rng)
        refusal = admission.refusal_of_request(known, request, is_retry=bool(exclude), now=now)
        if refusal is not None:
            return self._decision(draft, refusal=refusal)
        draft.eligible = known.rules.of(
            request,
            residency_of(known.tenants.spec(request.tenant), request),
            exclude=exclude,
            has_breakers=len(known.breakers) > 0,
            now=now,
        )
        if not request.parsed.can_split:
            # Its API has no legs for two endpoints.
            none = np.zeros_like(draft.eligible.prefills)
            draft.eligible = replace(draft.eligible, prefills=none, has_prefills=False)
        refusal = admission.refusal_of_pool(draft.eligible)
        if refusal is not None:
            return self._decision(draft, refusal=refusal)
        return self._priced_decision(draft, draft.eligible)

    def _priced_decision(self, draft: "_Draft", eligible: Eligibility) -> Decision:
        known, request = self._known, draft.request
        draft.hits = hits = known.hits(request)
        draft.demand = demand = objective.demand_of(known, request, hits, now=draft.now)
        one_place = eligible.one_place
        priced = objective.price(known, demand, eligible, one_place=one_place, now=draft.now)
        draft.priced = priced
        refusal = admission.refusal_of_wait(
            known.document, request, priced, is_retry=bool(draft.exclude)
        )
        if refusal is not None:
            return self._decision(draft, refusal=refusal)
        ask = Ask(
            request=request,
            priced=priced,
            hits=hits,
            eligible=eligible,
            output_tokens=demand.output_tokens,
            one_place=one_place,
            now=draft.now,
        )
        chosen = self.policies.choose(draft.policy, ask, known, self._rng)
        if isinstance(chosen, Refusal):
            return self._decision(draft, refusal=chosen)
        if not draft.exclude:
            refusal = admission.refusal_of_crowd(known, priced, chosen.row)
            if refusal is not None:
                return self._decision(draft, refusal=refusal)
        ids = known.table.ids
        shadows: tuple[ShadowChoice, ...] = ()
        if self.shadows.is_on and self.shadows.is_due():
            shadows = self.shadows.ask(self.policies, ask, known, live=draft.policy, row=chosen.row)
        return self._decision(
            draft,
            destination=ids[chosen.row],
            fallbacks=tuple([ids[row] for row in chosen.fallbacks]),
            prefill=None if chosen.prefill < 0 else ids[chosen.prefill],
            predicted=selection.predict(known.table, priced, chosen, hits, demand),
            margin_seconds=chosen.margin_seconds,
            runner_up=None if chosen.runner_up is None else ids[chosen.runner_up],
            reason=chosen.reason,
            scores=chosen.scores,
            shadows=shadows,
            degraded=_degraded(request) + known.degraded(chosen.row, now=draft.now),
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
        refusal = outcome.get("refusal")
        inputs = None
        if draft.keep == "always" or (refusal is not None and draft.keep == "refusals"):
            inputs = recording.inputs_of(self._known, draft, destination=outcome.get("destination"))
        return Decision(
            id=draft.id,
            request_id=draft.request.id,
            request=draft.request,
            inputs=inputs,
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
        self.queue.began(lease, now=now)
        known.transfers.begin(lease)
        known.links.begin(known.table, lease)
        learning.hope(known, lease)
        self.policies.began(lease, known.table, now=now)
        if decision.shadows:
            self.shadows.count(decision.shadows)
        return lease

    def hand_on(
        self, decision: Decision, *, exclude: frozenset[str], now: float
    ) -> Decision | None:
        """Another destination for a prompt that is computed already; `None` if there is none."""
        return handover.hand_on(self._known, decision, exclude=exclude, now=now)

    def prompt_is_there(self, lease: Lease, *, now: float) -> None:
        """The prompt of a lease was computed for an earlier one: nothing is learned from it."""
        if lease.is_open and lease.prefill_done_at is None:
            learning.prompt_done(self._known, lease, now=now)

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
            self.queue.stir()

    def tokens(self, lease: Lease, count: int, *, now: float) -> None:
        """`count` more output tokens came."""
        if lease.is_open:
            pace.after_tokens(self._known, lease, count, now=now)

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

        An `unseen` end was concluded: the prompt counts as computed, nothing else is learned.
        `cached_tokens` is what the destination found in its own cache; with a pair it is ignored,
        because pulled tokens are reported as cached.
        """
        if not lease.is_open:
            self.queue.ended(lease, 0)
            return
        is_answered = outcome in ("ok", "unseen")
        used = lease.used_tokens(
            is_answered=is_answered,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
        counts = learning.Counts(prompt_tokens, cached_tokens, completion_tokens)
        if outcome == "ok":
            learning.after_end(self._known, lease, counts, now=now)
        elif not is_answered and lease.first_token_at is None:
            learning.withdraw(self._known, lease)
        learning.leave(self._known, lease)
        self._known.leases.end(self._known.table, lease, now=now, is_answered=is_answered)
        self.queue.ended(lease, used)
        self.policies.ended(lease)

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
            before = known.table.open_until[row]
            known.table.open_until[row] = until = known.breakers.fail(instance, kind, now=now)
            if until > now and until != before:
                known.news.breaker(instance, kind, seconds=until - now)
        else:
            pair = (known.table.instances[other], instance)
            known.transfers.fail(pair)
            known.pairs.set_open(other, row, known.pair_breakers.fail(pair, kind, now=now))

    def observe(self, endpoint_id: str, signals: EngineSignals, *, now: float) -> None:
        """Take one reading of an engine's metrics; unknown endpoints are ignored."""
        known = self._known
        row = known.table.row_of.get(endpoint_id)
        if row is not None:
            learning.after_reading(known, known.table.instances[row], signals, now=now)
            self.queue.stir()

    def adapters_loaded(self, endpoint_id: str, names: frozenset[str]) -> None:
        """Adapters in an engine's list of models, used or not; unknown endpoints are ignored."""
        row = self._known.table.row_of.get(endpoint_id)
        if row is not None:
            instance = self._known.table.instances[row]
            instance.adapters = instance.adapters.with_loaded(names)

    def tokeniser_checked(self, endpoint_id: str, *, matches: bool, now: float) -> None:
        """An engine counted the same tokens as this router for a probe, or others."""
        row = self._known.table.row_of.get(endpoint_id)
        if row is not None:
            learning.after_check(self._known, row, matches=matches, now=now)

    def snapshot(self, *, now: float) -> dict[str, Any]:
        """JSON-able state for the admin port; unknown numbers are null."""
        return snapshot_of(self._known, now=now) | {
            "queue": self.queue.describe(now=now),
            "shadow": self.shadows.describe(),
        }


class _Draft(msgspec.Struct, kw_only=True):
    """What a decision is known to be while it is made."""

    id: str
    request: InferenceRequest
    policy: str
    now: float
    exclude: frozenset[str]
    keep: Keep
    eligible: Eligibility | None = None
    priced: Priced | None = None
    hits: Hits | None = None
    demand: Demand | None = None
    luck: str | None = None
    """Where the random numbers stood, for a replay."""


def _degraded(request: InferenceRequest) -> tuple[str, ...]:
    """What the prompt's identity lacks: a policy that looks at caches must say so."""
    return (request.parsed.degraded,) if request.parsed.degraded else ()
