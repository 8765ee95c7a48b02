"""The policy `consort`: the cheapest endpoint in seconds, near-ties to the longer hit.

For each endpoint of role decode the decider compares computing the prompt there with its cheapest
allowed pair, both in the same seconds; short or mostly cached prompts stay local. What is equal in
price and hit is drawn at random, so that several routers do not march in step.
"""

import msgspec
import numpy as np

from routing.core.document import ConsortParameters
from routing.core.pricing import BestTerms, Demand, PromptSide, Quote, Rows
from routing.core.table import Flags, Floats
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Knowledge
from routing.pool.pairs import PairTable

MAX_CELLS = 2048
"""Pairs priced per request; above it only the cheapest prefill endpoints are looked at."""
_EQUAL_SECONDS = 1e-9


class Priced(msgspec.Struct, frozen=True, kw_only=True):
    """All endpoints with their best way of computing the prompt; arrays over the table's rows."""

    rows: Rows
    """Rows that may answer."""
    terms: BestTerms
    hit_tokens: Floats
    """Trusted hit where the prompt is computed."""
    admission: Floats
    seconds_per_token: Floats
    """Of prefill, at each endpoint."""


def price(
    known: Knowledge, demand: Demand, eligible: Eligibility, *, one_place: bool, now: float
) -> Priced:
    """Price every endpoint; `one_place` keeps pairs within one jurisdiction."""
    table, pairs, document = known.table, known.pairs, known.document
    quote = Quote(table, demand, document.policy.parameters, now=now)
    terms, hits = BestTerms(quote.local()), demand.hit_tokens
    rows = pairs.decode_rows
    work = demand.prompt_tokens - hits[rows]
    least = document.disaggregation.minimum_uncached_tokens
    if pairs.exists and eligible.has_prefills and work.max() >= least:
        found = _best_pairs(quote, pairs, work, eligible.prefills, one_place=one_place, now=now)
        paired = quote.pairs(found.prompt, found.chosen, decode_rows=rows, transfer=found.transfer)
        local = terms.total[rows]
        # A pair that may not be used has an infinite transfer, so it is never the cheaper way.
        use = paired.total < local
        use &= work >= least
        sources = found.lines[found.chosen]
        terms.put_pairs(paired, sources=sources, use=use, column_of=pairs.column_of)
        terms.total = terms.total.copy()
        terms.total[rows] = np.where(use, paired.total, local)
        hits = hits.copy()
        hits[rows] = np.where(use, hits[sources], hits[rows])
    return Priced(
        rows=eligible.rows,
        terms=terms,
        hit_tokens=hits,
        admission=quote.admission,
        seconds_per_token=quote.seconds_per_token,
    )


class _BestPairs(msgspec.Struct, frozen=True, kw_only=True):
    prompt: PromptSide
    lines: Rows
    """Table rows of the prefill endpoints in `prompt`."""
    chosen: Rows
    """Per decode row the position in `lines`."""
    transfer: Floats
    """Seconds; inf where no pair is allowed."""


def _best_pairs(
    quote: Quote,
    pairs: PairTable,
    moved: Floats,
    prefills: Flags,
    *,
    one_place: bool,
    now: float,
) -> _BestPairs:
    """The cheapest prefill endpoint for each decode endpoint; `moved` tokens go over the wire."""
    lines = pairs.prefill_rows
    prompt = quote.prompt_side(lines)
    few = None
    if pairs.prior.size > MAX_CELLS:
        # A hundred prefill endpoints are not all the cheapest: rank them by the prompt alone.
        ranked = np.argsort(prompt.total + pairs.unusable(prefills, one_place=one_place))
        few = ranked[: MAX_CELLS // len(moved) + 1]
        lines = lines[few]
        prompt = quote.prompt_side(lines)
    costs = pairs.costs(prefills, one_place=one_place, now=now, lines=few)
    transfer = costs * moved
    chosen = (transfer + prompt.total[:, None]).argmin(axis=0)
    return _BestPairs(
        prompt=prompt, lines=lines, chosen=chosen, transfer=transfer[chosen, pairs.columns]
    )


def pick(priced: Priced, parameters: ConsortParameters, rng: np.random.Generator) -> int:
    """Position in `priced.rows` of the endpoint to use.

    The cheapest endpoint with the longest hit is the request's home: it is left only for one that
    is cheaper by more than `leave_home_factor` times the seconds that computing the missing part
    there takes.
    """
    totals = priced.terms.total[priced.rows]
    hits = priced.hit_tokens[priced.rows]
    cheapest = int(totals.argmin())
    longest = float(hits.max())
    missing = longest - hits[cheapest]
    if missing > 0:
        home = int(np.where(hits >= longest, totals, np.inf).argmin())
        recompute = missing * priced.seconds_per_token[priced.rows[cheapest]]
        if totals[home] - totals[cheapest] <= parameters.leave_home_factor * recompute:
            return home
    near = np.flatnonzero(totals <= totals[cheapest] * (1.0 + parameters.tie_share))
    if len(near) == 1:
        return cheapest
    near = near[hits[near] >= hits[near].max() - 0.5]
    costs = totals[near]
    near = near[costs <= costs.min() + _EQUAL_SECONDS]
    return int(near[0] if len(near) == 1 else rng.choice(near))


def following(priced: Priced, first: int, *, count: int) -> list[int]:
    """Positions of the next cheapest endpoints after `first`, at most `count`."""
    totals = priced.terms.total[priced.rows]
    totals[first] = np.inf
    found: list[int] = []
    # A few passes for the minimum are cheaper than partitioning.
    for _ in range(min(count, len(totals) - 1)):
        position = int(totals.argmin())
        totals[position] = np.inf
        found.append(position)
    return found
