"""Every policy by its name, on the same state: `consort` by price, peers by their own rules.

Peers keep state of their own (turns, trees, rings). A policy is made when the document names it,
as its policy or as a shadow, or when it is asked the first time, and from then on told of every
request that begins and ends, whoever chose it. Twelve names bound how many there can be.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from routing.core.decision import Refusal
from routing.core.document import PoolDocument
from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.scoring import Context
from routing.core.table import EndpointTable
from routing.pool import selection
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.objective import Priced
from routing.pool.policies import presets, simple
from routing.pool.policies.base import PeerPolicy, Ranking
from routing.pool.policies.dynamo import Dynamo
from routing.pool.policies.session_hash import make_session_hash
from routing.pool.policies.sglang_cache_aware import SglangCacheAware
from routing.pool.policies.weighted import WeightedPolicy
from routing.pool.selection import Chosen

_RULES: Final[dict[str, Callable[[], PeerPolicy]]] = {
    "random": simple.make_random,
    "round-robin": simple.make_round_robin,
    "least-requests": simple.make_least_requests,
    "power-of-two": simple.make_power_of_two,
    "session-hash": make_session_hash,
    "sglang-cache-aware": SglangCacheAware,
    "dynamo": Dynamo,
}


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a policy: the request with everything that was worked out for it."""

    request: InferenceRequest
    priced: Priced
    hits: Hits
    eligible: Eligibility
    output_tokens: int
    one_place: bool
    now: float


class Policies:
    """The policies of one pool's router."""

    def __init__(self, document: PoolDocument) -> None:
        self._made: dict[str, PeerPolicy] = {}
        self._document = document
        self.install(document)

    def install(self, document: PoolDocument) -> None:
        """Make what the document names; what it did not change keeps its memory.

        Raises DocumentError, before anything changed, when a profile cannot be run.
        """
        before = self._document
        kept = dict(self._made)
        if document.policy != before.policy:
            kept.pop("weighted", None)
        if _has_pairs(document) != _has_pairs(before):
            for name in (*presets.PRESETS, "weighted"):
                kept.pop(name, None)
        for name in (document.policy.name, *document.recording.shadow_policies):
            if name != "consort" and name not in kept:
                kept[name] = _make(name, document)
        self._made, self._document = kept, document

    def choose(
        self, name: str, ask: Ask, known: Knowledge, rng: np.random.Generator
    ) -> Chosen | Refusal:
        """What a policy would do; its memory and all loads stay as they are.

        Round robin moves on, as each of its choices does.
        """
        if name == "consort":
            return selection.by_price(known, ask.priced, rng)
        policy = self._made.get(name)
        if policy is None:
            policy = self._made[name] = _make(name, self._document)
        ranking = policy.choose(_context(ask, known, policy, rng))
        if not ranking.rows:
            return Refusal(
                status=503,
                code="no-capacity",
                message=f"The filter '{ranking.emptied_by}' of the policy left no endpoint.",
            )
        return _chosen(name, ranking, known)

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """A request was sent."""
        for policy in self._made.values():
            policy.began(lease, table, now=now)

    def ended(self, lease: Lease) -> None:
        """It is over."""
        for policy in self._made.values():
            policy.ended(lease)

    def forget(self) -> None:
        """Back to empty memories."""
        for policy in self._made.values():
            policy.forget()


def check(document: PoolDocument) -> None:
    """Raises DocumentError when the document's profiles cannot be run as they are."""
    if document.policy.profiles or document.policy.plugins:
        WeightedPolicy(document.policy)


def _make(name: str, document: PoolDocument) -> PeerPolicy:
    own = document.policy
    if name == "weighted" and (own.profiles or own.plugins):
        return WeightedPolicy(own)
    if name == "weighted":
        # Nothing stated is llm-d's built-in default.
        name = "llm-d-weighted"
    if name in presets.PRESETS:
        return WeightedPolicy(presets.preset(name, is_disaggregated=_has_pairs(document)))
    return _RULES[name]()


def _has_pairs(document: PoolDocument) -> bool:
    """Whether llm-d would be configured for pairs: some endpoint computes prompts for others."""
    return any(endpoint.role == "prefill" for endpoint in document.endpoints)


def _context(ask: Ask, known: Knowledge, policy: PeerPolicy, rng: np.random.Generator) -> Context:
    request, eligible, slo = ask.request, ask.eligible, known.document.slo

    def prefills_of(row: int) -> list[int]:
        return known.pairs.prefill_rows_for(
            row, eligible.prefills, one_place=ask.one_place, now=ask.now
        )

    return Context(
        request=request,
        table=known.table,
        rows=eligible.rows,
        output_tokens=ask.output_tokens,
        now=ask.now,
        rng=rng,
        memory=policy.memory,
        terms=ask.priced.terms,
        slo_ttft_seconds=request.slo_ttft_seconds or slo.ttft_seconds or 0.0,
        slo_tpot_seconds=request.slo_tpot_seconds or slo.tpot_seconds or 0.0,
        indexed_tokens=ask.hits.indexed,
        is_exact=ask.hits.is_exact,
        prefills_of=prefills_of if eligible.has_prefills else _nobody,
    )


def _nobody(row: int) -> list[int]:
    del row
    return []


def _chosen(name: str, ranking: Ranking, known: Knowledge) -> Chosen:
    rows = ranking.rows
    return Chosen(
        row=rows[0],
        prefill=ranking.prefill,
        fallbacks=tuple(rows[1 : max(2, known.document.limits.attempts)]),
        runner_up=rows[1] if len(rows) > 1 else None,
        margin_seconds=None,
        reason=f"chosen by {name}" + (f": {ranking.reason}" if ranking.reason else ""),
        scores=ranking.scores,
    )
