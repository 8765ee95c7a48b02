"""The decision maker of one pool: a document, what is known about its endpoints, and a choice.

Single-threaded and pure: time comes in as `now` (seconds on one monotonic clock), randomness from
the seed. Every change between two decisions goes through a method here.
"""

from typing import Any

import numpy as np

from routing.core.decision import Candidates, Decision, Predicted, Refusal
from routing.core.document import PoolDocument
from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.core.table import EndpointTable, Instance
from routing.pool.baselines import Baselines
from routing.pool.eligibility import Eligibility, EligibilityRules
from routing.pool.pairs import PairTable
from routing.producers.leases import LeaseBook
from routing.producers.lengths import BytesPerToken, OutputLengths


class PoolRouter:
    """See the module; `apply` swaps the document in one step and keeps what is still true."""

    def __init__(self, document: PoolDocument, *, seed: int, now: float) -> None:
        self.document = document
        self._rng = np.random.default_rng(seed)
        self._baselines = Baselines(self._rng)
        self._leases = LeaseBook()
        self._lengths = OutputLengths()
        self._bytes_per_token = BytesPerToken(document.prompt_identity.bytes_per_token)
        self._decisions = 0
        instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
        self._install(document, instances, now=now)

    def bytes_per_token(self, model: str) -> float:
        """Learned figure to hand to `parse_request`."""
        return self._bytes_per_token.of(model)

    def apply(self, document: PoolDocument, *, now: float) -> None:
        """Swap the document. Knowledge of unchanged (id, instance) stays; the rest is forgotten."""
        old_table, old_pairs = self._table, self._pairs
        known = {
            (instance.spec.id, instance.spec.instance): instance for instance in old_table.instances
        }
        instances, rows = [], {}
        for row, spec in enumerate(document.endpoints):
            instance = known.pop((spec.id, spec.instance), None)
            if instance is None:
                instance = Instance(spec, row, row)
            else:
                rows[row] = instance.row
                instance.spec, instance.row = spec, row
            instances.append(instance)
        for gone in known.values():
            gone.row = -1
        self._install(document, instances, now=now)
        self._table.adopt(old_table, rows)
        self._pairs.adopt(old_pairs, rows)
        self._leases.forget_dead(self._table, now=now)

    def reset_knowledge(self, *, now: float) -> None:
        """Forget what was learned; leases stay, because their requests are still running."""
        self._lengths.forget()
        self._bytes_per_token.forget()
        self._pairs.forget()

    def decide(
        self,
        request: InferenceRequest,
        *,
        now: float,
        exclude: frozenset[str] = frozenset(),
        policy: str | None = None,
    ) -> Decision:
        """Choose a destination (and a prefill endpoint), or refuse. Changes no load."""
        self._decisions += 1
        name = policy or self.document.policy.name
        eligible = self._rules.of(request, exclude=exclude, has_breakers=False, now=now)
        refusal = self._refusal(eligible)
        if refusal is not None:
            return self._decision(request, eligible, name, now=now, refusal=refusal)
        return self._baseline(
            request, eligible, "least-requests" if name == "consort" else name, now=now
        )

    def begin(self, request: InferenceRequest, decision: Decision, *, now: float) -> Lease:
        """Open the lease of a decision with a destination."""
        instances, row_of = self._table.instances, self._table.row_of
        prefill = None if decision.prefill is None else instances[row_of[decision.prefill]]
        return self._leases.begin(
            self._table,
            request,
            decision,
            destination=instances[row_of[decision.destination or ""]],
            prefill=prefill,
            now=now,
        )

    def prefill_done(
        self, lease: Lease, *, now: float, prompt_tokens: int | None, cached_tokens: int | None
    ) -> None:
        """The prefill leg answered."""
        lease.prefill_done_at = now
        lease.prefill_prompt_tokens, lease.prefill_cached_tokens = prompt_tokens, cached_tokens
        self._leases.prompt_done(self._table, lease, now=now)

    def first_token(self, lease: Lease, *, now: float) -> None:
        """The first output token came from the destination."""
        self._leases.first_token(self._table, lease, now=now)

    def tokens(self, lease: Lease, count: int, *, now: float) -> None:
        """`count` more output tokens came."""
        self._leases.tokens(self._table, lease, count)

    def end(
        self,
        lease: Lease,
        *,
        now: float,
        outcome: str,
        prompt_tokens: int | None = None,
        cached_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """Close a lease, once; learn from it when `outcome` is ok."""
        if not self._leases.end(self._table, lease, now=now) or outcome != "ok":
            return
        request = lease.request
        if completion_tokens is not None:
            self._lengths.observe(request.tenant, request.model, completion_tokens)
        if prompt_tokens is not None and not request.parsed.has_exact_tokens:
            self._bytes_per_token.observe(
                request.model,
                prompt_bytes=request.parsed.prompt_bytes,
                prompt_tokens=prompt_tokens,
            )

    def failed(
        self, endpoint_id: str, kind: str, *, now: float, prefill_id: str | None = None
    ) -> None:
        """An attempt failed in a way that is not the client's fault."""

    def observe(self, endpoint_id: str, signals: EngineSignals, *, now: float) -> None:
        """Take one reading of an engine's metrics."""

    def snapshot(self, *, now: float) -> dict[str, Any]:
        """JSON-able state for the admin port."""
        return {"leases_open": len(self._leases), "bytes_per_token": self._bytes_per_token.all()}

    def _install(self, document: PoolDocument, instances: list[Instance], *, now: float) -> None:
        self.document = document
        self._table = EndpointTable(document, instances, now=now)
        self._rules = EligibilityRules(self._table)
        self._pairs = PairTable(document, self._table)

    def _refusal(self, eligible: Eligibility) -> Refusal | None:
        if eligible.answers.any():
            return None
        if eligible.forbidden:
            return Refusal(
                status=403,
                code="policy-denied",
                message="No endpoint of this pool is in a jurisdiction that the tenant may use.",
            )
        return Refusal(
            status=503, code="no-capacity", message="No endpoint can take this request at present."
        )

    def _baseline(
        self, request: InferenceRequest, eligible: Eligibility, name: str, *, now: float
    ) -> Decision:
        rows = [int(row) for row in np.flatnonzero(eligible.answers)]
        order = self._baselines.order(name, rows, self._table, choice="answer")
        prefills = self._pairs.prefill_rows_for(
            order[0], eligible.prefills, one_place=request.jurisdictions is not None, now=now
        )
        prefill = None
        if prefills:
            prefill = self._baselines.order(name, prefills, self._table, choice="prefill")[0]
        parsed, ids = request.parsed, self._table.ids
        return self._decision(
            request,
            eligible,
            name,
            now=now,
            destination=ids[order[0]],
            fallbacks=tuple(ids[row] for row in order[1 : self.document.limits.attempts]),
            prefill=None if prefill is None else ids[prefill],
            runner_up=ids[order[1]] if len(order) > 1 else None,
            reason=f"chosen by {name}",
            predicted=Predicted(
                uncached_tokens=parsed.prompt_tokens,
                output_tokens=self._lengths.expected(
                    request.tenant, request.model, maximum=parsed.max_tokens
                ),
            ),
            candidates=Candidates(ids=tuple(ids[row] for row in rows)),
        )

    def _decision(
        self,
        request: InferenceRequest,
        eligible: Eligibility,
        policy: str,
        *,
        now: float,
        **outcome: Any,
    ) -> Decision:
        return Decision(
            id=f"d-{self._decisions}-{request.id}",
            request_id=request.id,
            policy=policy,
            pool=self.document.pool,
            document_version=self.document.version,
            decided_at=now,
            endpoint_ids=self._table.ids,
            removed=eligible.removed,
            **outcome,
        )
