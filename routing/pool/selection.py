"""From prices or rules to one choice: destination, prefill endpoint, fallbacks, and predictions."""

import msgspec
import numpy as np

from routing.core import outlook
from routing.core.decision import Predicted
from routing.core.price_terms import LOAD, TPOT, TRANSFER, WAIT
from routing.core.pricing import Demand
from routing.core.table import EndpointTable, Floats
from routing.pool import objective
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
    scores: tuple[tuple[str, float, Floats], ...] = ()
    """Scorer, weight and scores over the table's rows, for policies that weigh."""


def by_price(known: Knowledge, priced: Priced, rng: np.random.Generator) -> Chosen:
    """The policy `consort`: cheapest, near-ties to the longer hit."""
    document, rows, totals = known.document, priced.rows, priced.totals
    first = objective.pick(priced, document.policy.parameters, rng)
    count = max(1, document.limits.attempts - 1)
    after = objective.following(priced, first, count=count)
    row = rows.item(first)
    runner_up = rows.item(after[0]) if after else None
    margin = totals.item(after[0]) - totals.item(first) if after else None
    prefill = priced.terms.prefill_at(row)
    reason = "cheapest"
    if margin is not None and margin < 0:
        reason = _reason_of_a_dearer_one(priced, first)
    elif priced.hits.item(first) > 0:
        reason = "cheapest, with a cache hit"
    return Chosen(
        row=row,
        prefill=prefill,
        fallbacks=tuple([rows.item(position) for position in after]),
        runner_up=runner_up,
        margin_seconds=margin,
        reason=reason,
    )


def _reason_of_a_dearer_one(priced: Priced, first: int) -> str:
    if priced.hits[first] < priced.hits.max():
        return "home of its prefix, where computing it pays for those that follow"
    place = "home of its prefix" if priced.rows[first] in priced.homes else "longest hit"
    return f"{place}, where leaving gains too little"


def predict(
    table: EndpointTable, priced: Priced, chosen: Chosen, hits: Hits, demand: Demand
) -> Predicted:
    """What is expected of the choice. Seconds are NaN when the pair was not the priced one.

    The time per token is what the answer will see, a price is about the batch as it is.
    """
    row, prefill = chosen.row, chosen.prefill
    terms, column = priced.terms.at(row)
    source = row if prefill < 0 else prefill
    hit = int(hits.trusted.item(source))
    ttft = wait = transfer = NOT_PREDICTED
    if priced.terms.prefill_at(row) == prefill:
        ttft, wait = terms.ttft_at(column), terms.at(WAIT, column)
        transfer = terms.at(TRANSFER, column)
    return Predicted(
        hit_tokens=hit,
        indexed_tokens=int(hits.indexed.item(source)),
        uncached_tokens=demand.prompt_tokens - hit,
        destination_hit_tokens=int(hits.trusted.item(row)),
        output_tokens=demand.output_tokens,
        ttft_seconds=ttft,
        tpot_seconds=outlook.tpot_seconds(
            table,
            row,
            prompt_tokens=demand.prompt_tokens,
            output_tokens=demand.output_tokens,
            ttft=ttft if ttft == ttft else 0.0,
            priced=terms.at(TPOT, column),
        ),
        wait_seconds=wait,
        admission_seconds=priced.admission.item(source),
        transfer_seconds=transfer,
        load_seconds=terms.at(LOAD, column),
    )
