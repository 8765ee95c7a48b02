"""The policy `consort`: the cheapest endpoint in seconds, near-ties to the longer hit.

For each endpoint of role decode the decider compares computing the prompt there with its cheapest
allowed pair, both in the same seconds; short or mostly cached prompts stay local. What is equal in
price and hit is drawn at random, so that several routers do not march in step.
"""

import msgspec
import numpy as np

from routing.core.document import ConsortParameters, PoolDocument
from routing.core.price_terms import CAPACITY, PREFILL
from routing.core.pricing import BestTerms, Demand, PriceTerms, PromptSide, Quote, Rows
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Flags, Floats
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Hits, Knowledge
from routing.pool.pairs import PairTable

MAX_CELLS = 2048
"""Pairs priced per request; above it only the cheapest prefill endpoints are looked at."""
FULL = 0.9
"""Share of KV memory in use from which a prefix that moves in pushes out another one."""
SETTLING_SHARES = 4.0
"""How many tie shares the place of a prompt that nobody knows may be dearer than the cheapest."""
BUILT_FOR_REQUESTS = 20.0
"""Requests over which computing a prefix at its home is spread, against leaving it where it is."""
_EQUAL_SECONDS = 1e-9
_LEAST_TOKENS = 1e-6
"""Keeps what goes over a link that may not be used infinitely dear, be it nothing."""
_NOTHING: Floats = np.zeros(0)


def demand_of(known: Knowledge, request: InferenceRequest, hits: Hits, *, now: float) -> Demand:
    """What a request asks for; its own targets go before the pool's."""
    slo, homes = known.document.slo, known.homes_of(request)
    ttft, tpot = request.slo_ttft_seconds, request.slo_tpot_seconds
    return Demand(
        prompt_tokens=request.parsed.prompt_tokens,
        output_tokens=known.expected_output(request),
        hit_tokens=hits.trusted,
        load_seconds=hits.load_seconds,
        ttft_target=slo.ttft_seconds if ttft is None else ttft,
        tpot_target=slo.tpot_seconds if tpot is None else tpot,
        homes=homes[0],
        shared_tokens=homes[1],
        doubt=known.doubt(now=now),
    )


class Priced(msgspec.Struct, kw_only=True):
    """All endpoints with their best way of computing the prompt; arrays over the table's rows.

    A choice is made among `rows`; what it reads of them is gathered once.
    """

    rows: Rows
    """Rows that may answer."""
    terms: BestTerms
    hit_tokens: Floats
    """Trusted hit where the prompt is computed."""
    admission: Floats
    seconds_per_token: Floats
    """Of prefill, at each endpoint."""
    homes: tuple[int, ...] = ()
    """Rows on which the prompt's prefix lives."""
    shared_tokens: float = 0.0
    doubt: float = 0.0
    lacking: Floats | None = None
    """Room that each endpoint has for more of the pool's load; see `EndpointTable.lacking`."""
    memory: Floats | None = None
    """Share of KV memory in use at each endpoint, NaN where unknown."""
    sequences: Floats | None = None
    """In flight at each endpoint."""
    crowded: Flags | None = None
    """Endpoints whose batch is too large for the pool's time per token; `None` where none is, or
    nobody can wait for room."""
    totals: Floats = _NOTHING
    """Price of each of `rows`."""
    hits: Floats = _NOTHING
    """Trusted hit for each of `rows`."""
    cheapest: int = 0
    """Position in `rows`."""

    def __post_init__(self) -> None:
        """Gather."""
        self.totals = self.terms.total[self.rows]
        self.hits = self.hit_tokens[self.rows]
        self.cheapest = int(self.totals.argmin())


def price(
    known: Knowledge, demand: Demand, eligible: Eligibility, *, one_place: bool, now: float
) -> Priced:
    """Price every endpoint; `one_place` keeps pairs within one jurisdiction."""
    table, document = known.table, known.document
    quote = Quote(table, demand, document.policy.parameters, now=now)
    local = quote.local()
    terms, hits = BestTerms(local), demand.hit_tokens
    found = None
    if known.pairs.exists and eligible.has_prefills:
        moved = demand.prompt_tokens - hits[known.pairs.decode_rows]
        may_split = moved >= document.disaggregation.minimum_uncached_tokens
        if np.count_nonzero(may_split):
            found = _best_pairs(
                quote, known.pairs, moved, eligible.prefills, one_place=one_place, now=now
            )
    if quote.has_targets:
        ways = [(local, eligible.rows)]
        if found is not None:
            ways.append((found.terms, np.flatnonzero(eligible.answers[known.pairs.decode_rows])))
        quote.penalise(ways)
        terms = BestTerms(local)
    if found is not None:
        hits = _merge(terms, hits, found, may_split, known.pairs)
    return Priced(
        rows=eligible.rows,
        terms=terms,
        hit_tokens=hits,
        admission=quote.admission,
        seconds_per_token=quote.seconds_per_token,
        homes=demand.homes,
        shared_tokens=demand.shared_tokens,
        doubt=demand.doubt,
        lacking=table.lacking,
        memory=table.kv_usage,
        sequences=quote.sequences,
        crowded=_crowded(document, quote),
    )


def _crowded(document: PoolDocument, quote: Quote) -> Flags | None:
    target = document.slo.tpot_seconds
    if target is None or not document.admission.queue_requests:
        return None
    return quote.crowded(target)


class _BestPairs(msgspec.Struct, frozen=True, kw_only=True):
    terms: PriceTerms
    """Of each decode endpoint with its cheapest prefill endpoint; transfer inf: none is allowed."""
    sources: Rows
    """Per decode row the row of that endpoint."""


def _wait_for_links(
    table: EndpointTable, costs: Floats, prompt: PromptSide, decode_rows: Rows
) -> Floats:
    """Seconds until both links of each pair are free, beyond the time that the prompt takes.

    A link moves one prompt after the other, so the busier one of a pair's two counts.
    """
    ahead = np.maximum(
        table.outgoing_tokens[prompt.rows][:, None], table.incoming_tokens[decode_rows][None, :]
    )
    waits: Floats = costs * np.maximum(ahead, _LEAST_TOKENS) - prompt.ready[:, None]
    return np.maximum(waits, 0.0, out=waits)


def _best_pairs(
    quote: Quote, pairs: PairTable, moved: Floats, prefills: Flags, *, one_place: bool, now: float
) -> _BestPairs:
    """The cheapest prefill endpoint for each decode endpoint; `moved` tokens go over the wire."""
    prompt = quote.prompt_side(pairs.prefill_rows)
    few = None
    if pairs.prior.size > MAX_CELLS:
        # A hundred prefill endpoints are not all the cheapest: rank them by the prompt alone.
        ranked = np.argsort(prompt.total + pairs.unusable(prefills, one_place=one_place))
        few = ranked[: MAX_CELLS // len(moved) + 1]
        prompt = prompt.only(few)
    costs = pairs.costs(prefills, one_place=one_place, now=now, lines=few)
    transfer = moving = costs * np.maximum(moved, _LEAST_TOKENS)
    if np.count_nonzero(quote.table.incoming_tokens):
        transfer = moving + _wait_for_links(quote.table, costs, prompt, pairs.decode_rows)
    chosen = (transfer + prompt.total[:, None]).argmin(axis=0)
    terms = quote.pairs(
        prompt,
        chosen,
        decode_rows=pairs.decode_rows,
        transfer=transfer[chosen, pairs.columns],
        moving=moving[chosen, pairs.columns],
    )
    return _BestPairs(terms=terms, sources=prompt.rows[chosen])


def _merge(
    terms: BestTerms, hits: Floats, found: _BestPairs, may_split: Flags, pairs: PairTable
) -> Floats:
    """Put pairs where they are the cheaper way; returns the hits where prompts are computed.

    `may_split` are decode endpoints that lack enough of the prompt to get it from elsewhere.
    """
    rows, paired = pairs.decode_rows, found.terms.total
    here = terms.total[rows]
    # A pair that may not be used has an infinite transfer, so it is never the cheaper way.
    use = paired < here
    use &= may_split
    if not np.count_nonzero(use):
        return hits
    terms.put_pairs(found.terms, sources=found.sources, use=use, column_of=pairs.column_of)
    terms.total = terms.total.copy()
    terms.total[rows] = np.where(use, paired, here)
    merged = hits.copy()
    merged[rows] = np.where(use, hits[found.sources], hits[rows])
    return merged


def pick(priced: Priced, parameters: ConsortParameters, rng: np.random.Generator) -> int:
    """Position in `priced.rows` of the endpoint to use.

    A prompt whose prefix has homes goes to the cheapest of them, others to the cheapest endpoint
    with the longest hit, unless leaving gains more than `leave_home_factor` times the seconds that
    computing the missing part elsewhere takes; far more where memory is full there.
    """
    totals, hits, cheapest = priced.totals, priced.hits, priced.cheapest
    longest = hits.item(hits.argmax())
    home = -1
    if priced.homes:
        home, value = _home_or_holder(priced, parameters, longest)
    elif longest > hits[cheapest]:
        home = int(np.where(hits >= longest, totals, np.inf).argmin())
        value = float(totals[home])
    if home >= 0 and home != cheapest:
        missing = max(longest, priced.shared_tokens) - float(hits[cheapest])
        if value - totals[cheapest] > _patience(priced, parameters, cheapest, missing):
            home = -1
    if home >= 0:
        return home if priced.doubt <= 0 else _draw(priced, home, rng)
    if longest <= 0 and priced.lacking is not None:
        return _settle(priced, parameters, rng)
    return _of_the_near(priced, parameters, rng, cheapest)


def _of_the_near(
    priced: Priced, parameters: ConsortParameters, rng: np.random.Generator, cheapest: int
) -> int:
    """Of those about as cheap as the cheapest the one with the longest hit, then chance."""
    totals, hits = priced.totals, priced.hits
    near = np.flatnonzero(totals <= totals[cheapest] * (1.0 + parameters.tie_share))
    if len(near) == 1:
        return cheapest
    near = near[hits[near] >= hits[near].max() - 0.5]
    costs = totals[near]
    near = near[costs <= costs.min() * (1.0 + priced.doubt) + _EQUAL_SECONDS]
    if len(near) > 2 and priced.doubt > 0:
        near = near[_two_of(len(near), rng)]
        costs = totals[near]
        near = near[costs <= costs.min() + _EQUAL_SECONDS]
    return _any_of(near, rng)


def _any_of(near: Rows, rng: np.random.Generator) -> int:
    """One of some positions by chance; `Generator.choice` takes ten times as long for a few."""
    count = len(near)
    return near.item(0 if count == 1 else int(rng.random() * count))


def _two_of(count: int, rng: np.random.Generator) -> list[int]:
    """Two different numbers below `count`, which is at least 2."""
    one, other = int(rng.random() * count), int(rng.random() * (count - 1))
    return [one, other + (other >= one)]


def _settle(priced: Priced, parameters: ConsortParameters, rng: np.random.Generator) -> int:
    """Where a prompt goes of which nobody has anything: of those that cost about the same, the one
    that has most room on the slow scale. Its prefix will stay there.
    """
    totals, lacking = priced.totals, priced.lacking
    near = np.flatnonzero(totals <= totals[priced.cheapest] + _settling_seconds(priced, parameters))
    if priced.doubt > 0 and len(near) > 2:
        # Other routers see the same room.
        near = near[_two_of(len(near), rng)]
    room = np.zeros(len(near)) if lacking is None else lacking[priced.rows[near]]
    near = near[room >= room.max()]
    return _any_of(near, rng)


def _settling_seconds(priced: Priced, parameters: ConsortParameters) -> float:
    """How much dearer room may be: a share of the price, and no more than twice the same share of
    it without work done again, which is the same everywhere and nothing that anybody waits for.
    """
    row = int(priced.rows[priced.cheapest])
    way, column = priced.terms.at(row)
    total = float(priced.totals[priced.cheapest])
    least = min(total, 2.0 * (total - way.at(CAPACITY, column)))
    return SETTLING_SHARES * parameters.tie_share * least


def _draw(priced: Priced, first: int, rng: np.random.Generator) -> int:
    """The cheaper of two that are about as good as the first choice, with as long a hit.

    Routers that decide at the same moment on the same figures would all take the first.
    """
    totals, hits = priced.totals, priced.hits
    near = np.flatnonzero(
        (totals <= totals[first] * (1.0 + priced.doubt)) & (hits >= hits[first] - 0.5)
    )
    if len(near) < 2:
        return first
    one, other = (near.item(position) for position in _two_of(len(near), rng))
    return one if totals[one] <= totals[other] else other


def _patience(
    priced: Priced, parameters: ConsortParameters, cheapest: int, missing: float
) -> float:
    """How much dearer a home may be than the cheapest endpoint, which lacks `missing` tokens."""
    row = int(priced.rows[cheapest])
    seconds = parameters.leave_home_factor * max(missing, 0.0) * priced.seconds_per_token[row]
    if priced.memory is not None and priced.sequences is not None and priced.memory[row] > FULL:
        # A prefix that moves in pushes another one out.
        seconds *= 1.0 + priced.sequences[row] / 4.0
    return float(seconds)


def _home_or_holder(
    priced: Priced, parameters: ConsortParameters, longest: float
) -> tuple[int, float]:
    """The best home and its price; or who holds more of the prefix and is cheaper right now.

    Computing the prefix at home pays only if that makes it cheaper for the requests that follow:
    its cost is spread over some of them. In an idle pool whoever holds a prefix keeps it. A prefix
    that needs several homes is computed there before it has to be, while that is still cheap.
    """
    home, value = _home(priced, parameters, longest)
    if home >= 0 and priced.hits[home] < longest:
        totals = priced.totals
        holder = int(np.where(priced.hits >= longest, totals, np.inf).argmin())
        spread = value + (totals[home] - value) / BUILT_FOR_REQUESTS
        shares = SETTLING_SHARES if len(priced.homes) > 1 else 0.0
        bearable = totals[holder] * (1.0 + shares * parameters.tie_share)
        if totals[holder] < totals[home] and bearable <= spread:
            return holder, float(totals[holder])
    return home, value


def _home(priced: Priced, parameters: ConsortParameters, longest: float) -> tuple[int, float]:
    """Position and price of the cheapest home that may be used; -1 when there is none.

    Computing there what others hold already is not counted: that was weighed when it became home.
    """
    best, least = -1, np.inf
    rows = priced.rows
    for row in priced.homes:
        position = int(rows.searchsorted(row))
        if position == len(rows) or rows[position] != row:
            continue
        value = float(priced.terms.total[row])
        missing = longest - float(priced.hit_tokens[row])
        if missing > 0:
            value -= _settling(priced, parameters, row, missing)
        if value < least:
            best, least = position, value
    return best, least


def _settling(priced: Priced, parameters: ConsortParameters, row: int, missing: float) -> float:
    """Part of a price that is for computing `missing` tokens once."""
    terms, column = priced.terms.at(row)
    prefill = terms.at(PREFILL, column)
    if prefill <= 0:
        return 0.0
    share = min(1.0, missing * float(priced.seconds_per_token[row]) / prefill)
    crowd = 0.0 if priced.sequences is None else float(priced.sequences[row])
    stall = parameters.harm_weight * crowd * prefill if terms.transfer_at(column) == 0 else 0.0
    return share * (prefill + terms.at(CAPACITY, column) + stall)


def following(priced: Priced, first: int, *, count: int) -> list[int]:
    """Positions of the next cheapest endpoints after `first`, at most `count`."""
    totals = priced.totals.copy()
    totals[first] = np.inf
    found: list[int] = []
    # A few passes for the minimum are cheaper than partitioning.
    for _ in range(min(count, len(totals) - 1)):
        position = int(totals.argmin())
        totals[position] = np.inf
        found.append(position)
    return found
