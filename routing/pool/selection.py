"""From prices or rules to one choice: destination, prefill endpoint, fallbacks, and predictions."""

import msgspec
import numpy as np

from routing.core.decision import Predicted
from routing.core.pricing import Demand
from routing.pool import objective
from routing.pool.baselines import Baselines
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.objective import Priced

NOT_PREDICTED = float("nan")


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of the table; `prefill` is -1 when the destination computes the prompt itself."""

    row: int
    prefill: int
    fallbacks: tuple[int, ...]
    runner_up: int | None
    margin_seconds: float | None
    reason: str


def by_price(known: Knowledge, priced: Priced, rng: np.random.Generator) -> Chosen:
    """The policy `consort`: cheapest, near-ties to the longer hit."""
    document, rows, totals = known.document, priced.rows, priced.terms.total
    first = objective.pick(priced, document.policy.parameters, rng)
    count = max(1, document.limits.attempts - 1)
    after = objective.following(priced, first, count=count)
    row = int(rows[first])
    runner_up = int(rows[after[0]]) if after else None
    margin = None if runner_up is None else float(totals[runner_up] - totals[row])
    prefill = priced.terms.prefill_at(row)
    reason = "cheapest"
    if margin is not None and margin < 0:
        reason = "longest hit, where leaving gains too little"
    elif priced.hit_tokens[row] > 0:
        reason = "cheapest, with a cache hit"
    return Chosen(
        row=row,
        prefill=prefill,
        fallbacks=tuple(int(rows[position]) for position in after),
        runner_up=runner_up,
        margin_seconds=margin,
        reason=reason,
    )


def by_rule(
    known: Knowledge,
    eligible: Eligibility,
    baselines: Baselines,
    *,
    policy: str,
    one_place: bool,
    now: float,
) -> Chosen:
    """The policies without a price; the prefill endpoint of a pair is chosen by the same rule."""
    rows = eligible.rows.tolist()
    order = baselines.order(policy, rows, known.table, choice="answer")
    able = known.pairs.prefill_rows_for(order[0], eligible.prefills, one_place=one_place, now=now)
    prefill = baselines.order(policy, able, known.table, choice="prefill")[0] if able else -1
    return Chosen(
        row=order[0],
        prefill=prefill,
        fallbacks=tuple(order[1 : max(2, known.document.limits.attempts)]),
        runner_up=order[1] if len(order) > 1 else None,
        margin_seconds=None,
        reason=f"chosen by {policy}",
    )


def predict(priced: Priced, chosen: Chosen, hits: Hits, demand: Demand) -> Predicted:
    """What is expected of the choice. Seconds are NaN when the pair was not the priced one."""
    row, prefill = chosen.row, chosen.prefill
    terms, column = priced.terms.at(row)
    source = row if prefill < 0 else prefill
    hit = int(hits.trusted[source])
    is_priced = priced.terms.prefill_at(row) == prefill

    def seconds(value: float) -> float:
        return float(value) if is_priced else NOT_PREDICTED

    return Predicted(
        hit_tokens=hit,
        indexed_tokens=int(hits.indexed[source]),
        uncached_tokens=demand.prompt_tokens - hit,
        destination_hit_tokens=int(hits.trusted[row]),
        output_tokens=demand.output_tokens,
        ttft_seconds=seconds(terms.ttft_at(column)),
        tpot_seconds=terms.tpot_at(column),
        wait_seconds=seconds(terms.wait[column]),
        admission_seconds=float(priced.admission[source]),
        transfer_seconds=seconds(terms.transfer_at(column)),
    )
