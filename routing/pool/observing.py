"""Choices of somebody else's gateway, put to our policies: what they would have done instead.

The gateway's choice becomes a decision that began like our own, so that load, caches and speeds are
learned from its traffic; the price of `consort` says what it cost, and each policy is asked on the
same state. Nothing is limited, refused or sent.
"""

import msgspec

from routing.core.decision import Candidates, Decision
from routing.core.pricing import Demand
from routing.core.request import InferenceRequest
from routing.pool import objective, recording, selection
from routing.pool.decision_ids import DecisionIds
from routing.pool.eligibility import ANYWHERE, Eligibility
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.objective import Priced
from routing.pool.policy import Ask, Policies
from routing.pool.recording import Keep
from routing.pool.selection import Chosen
from routing.pool.shadow import GATEWAY, Shadows

REASON = "the gateway's choice"


class Observing:
    """See the module."""

    def __init__(
        self, known: Knowledge, policies: Policies, shadows: Shadows, ids: DecisionIds
    ) -> None:
        self._known = known
        self._policies = policies
        self._shadows = shadows
        self._ids = ids

    def decision(
        self, request: InferenceRequest, *, destination: str, keep: Keep, now: float
    ) -> Decision | None:
        """What the gateway did, priced, with what each policy would have done.

        `None` when the pool knows no such endpoint, or one that may not take the request here.
        """
        known = self._known
        known.refresh(now=now)
        row = known.table.row_of.get(destination)
        eligible = known.rules.of(
            request, ANYWHERE, exclude=frozenset(), has_breakers=False, now=now
        )
        if row is None or not eligible.answers[row]:
            return None
        hits = known.hits(request)
        demand = objective.demand_of(known, request, hits, now=now)
        priced = objective.price(known, demand, eligible, one_place=eligible.one_place, now=now)
        chosen = Chosen(
            row=row, prefill=-1, fallbacks=(), runner_up=None, margin_seconds=None, reason=REASON
        )
        ask = Ask(
            request=request,
            priced=priced,
            hits=hits,
            eligible=eligible,
            output_tokens=demand.output_tokens,
            one_place=eligible.one_place,
            now=now,
        )
        moment = _Moment(now=now, eligible=eligible, priced=priced, hits=hits, demand=demand)
        table, document = known.table, known.document
        return Decision(
            id=self._ids.next(),
            request_id=request.id,
            request=request,
            policy=GATEWAY,
            pool=document.pool,
            document_version=document.version,
            decided_at=now,
            destination=destination,
            predicted=selection.predict(table, priced, chosen, hits, demand),
            reason=REASON,
            candidates=Candidates(
                rows=priced.rows,
                terms=priced.terms,
                hit_tokens=priced.hit_tokens,
                signal_age_seconds=now - table.observed_at,
            ),
            endpoint_ids=table.ids,
            removed=eligible.removed,
            shadows=self._shadows.ask(self._policies, ask, known, live=GATEWAY, row=row),
            inputs=recording.inputs_of(known, moment, destination=destination)
            if keep == "always"
            else None,
        )


class _Moment(msgspec.Struct, kw_only=True):
    """What is known when the gateway's choice is seen; see `recording.Moment`."""

    now: float
    eligible: Eligibility | None
    priced: Priced | None
    hits: Hits | None
    demand: Demand | None
    exclude: frozenset[str] = frozenset()
    luck: str | None = None
