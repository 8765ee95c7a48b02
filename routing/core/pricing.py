"""The price of every endpoint for one request, in seconds, term by term.

For a prompt of N tokens and an expected output of O tokens on endpoint e:

    work      = N - hit                      hit = trust * tokens in e's cache
    wait      = queued prefill tokens * seconds per token + wait for memory and for a free sequence
    prefill   = work * seconds per token
    step      = a + b * sequences + c * context tokens
    ttft      = wait + prefill + first-step factor * step + transfer (pairs only)
    decode    = O * (step + b + c * (N + O / 2))
    harm      = output that others in flight still expect * (b + c * (N + O / 2))
                + sequences in flight * prefill           (only where prefill and decode share e)
    capacity  = beta * prefill * (1 + sequences / 8)      work done again is taken from everybody
    total     = ttft + decode + harm_weight * harm + capacity + money_weight * marginal price

Own time plus harm is the change of the pool's total latency. In a model of three vendors' endpoints
at 85 requests/s, dropping harm cost 14 % of the throughput, one speed for all classes 38 %; beta 10
was the best of 3, 10, 30 and 100 over all workloads tried. The wait for memory is the missing KV
tokens over the rate at which running sequences give theirs back; it was worth 2 to 3 % at overload.

A signal that is unknown takes part as neutral: no capacity figure, no wait for memory.
"""

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from routing.core.document import ConsortParameters
from routing.core.table import EndpointTable, Flags, Floats

Rows = NDArray[np.intp]

CROWD = 8.0
"""Sequences in flight at which work done again weighs double."""
RAMP_FLOOR = 0.1
"""Share of its speed that a fresh endpoint is given at once."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What one request asks for, the same at every endpoint."""

    prompt_tokens: int
    output_tokens: int
    hit_tokens: Floats
    """Trusted tokens in each endpoint's cache, below `prompt_tokens`."""


TERMS = ("wait", "prefill", "first_step", "transfer", "decode", "harm", "capacity", "money")
"""The parts of the total, in the order of the lines of `PriceTerms.values`."""
_TOTAL, _TPOT = len(TERMS), len(TERMS) + 1
_WAIT, _PREFILL, _FIRST_STEP, _TRANSFER, _DECODE, _HARM, _CAPACITY, _MONEY = range(len(TERMS))


class PriceTerms:
    """Seconds per term and endpoint: one matrix, so that a decision copies and merges it at once.

    `values` has a line per term, then the total, then the time per output token; shape `(10, n)`.
    """

    __slots__ = ("values",)

    def __init__(self, values: Floats) -> None:
        self.values = values

    @classmethod
    def empty(cls, count: int) -> "PriceTerms":
        """Lines to be filled; transfer and money are 0."""
        return cls(np.zeros((len(TERMS) + 2, count)))

    def add_up(self) -> None:
        """Fill the total from the terms."""
        self.values[:_TOTAL].sum(axis=0, out=self.values[_TOTAL])

    @property
    def total(self) -> Floats:
        """The price."""
        line: Floats = self.values[_TOTAL]
        return line

    @property
    def wait(self) -> Floats:
        """Seconds before anything is done for the request."""
        line: Floats = self.values[_WAIT]
        return line

    def ttft_at(self, row: int) -> float:
        """Expected seconds to the first token at one endpoint."""
        return float(self.values[_WAIT : _TRANSFER + 1, row].sum())

    def tpot_at(self, row: int) -> float:
        """Expected seconds per output token at one endpoint."""
        return float(self.values[_TPOT, row])

    def transfer_at(self, row: int) -> float:
        """Expected seconds that KV takes from the prefill endpoint; 0 for a local prompt."""
        return float(self.values[_TRANSFER, row])

    def by_name(self, row: int) -> dict[str, float]:
        """All numbers of one endpoint, for a record."""
        names = (*TERMS, "total", "tpot")
        return dict(zip(names, self.values[:, row].tolist(), strict=True))


class BestTerms:
    """For each endpoint the cheaper way of computing the prompt: there, or through its best pair.

    Only the total, which every choice reads, is merged; the rest is looked up per endpoint.
    """

    __slots__ = ("_column_of", "_local", "_paired", "_sources", "_use", "total")

    def __init__(self, local: PriceTerms) -> None:
        self._local = local
        self._paired: PriceTerms | None = None
        self._column_of: Mapping[int, int] = {}
        self._use: Flags | None = None
        self._sources: Rows | None = None
        self.total = local.total

    def put_pairs(
        self, paired: PriceTerms, *, sources: Rows, use: Flags, column_of: Mapping[int, int]
    ) -> None:
        """Prefer the pairs where `use` is true.

        `sources` are the table rows of the prefill endpoints, `column_of` gives the column in
        `paired` of each decode row, in order.
        """
        self._paired, self._column_of = paired, column_of
        self._use, self._sources = use, sources

    def at(self, row: int) -> tuple[PriceTerms, int]:
        """Terms that hold for an endpoint, and its column in them."""
        column = self._column_of.get(row)
        if column is None or self._paired is None or self._use is None or not self._use[column]:
            return self._local, row
        return self._paired, column

    def prefill_at(self, row: int) -> int:
        """Row of the endpoint that computes the prompt for this one; -1 when it does so itself."""
        terms, column = self.at(row)
        return -1 if terms is self._local or self._sources is None else int(self._sources[column])

    def cheapest_wait(self, rows: Rows) -> float:
        """Shortest wait among some endpoints."""
        shortest = float(self._local.wait[rows].min())
        if self._paired is None or self._use is None or shortest <= 0:
            return shortest
        ways = (self.at(int(row)) for row in rows)
        return min(float(terms.wait[column]) for terms, column in ways)


class PromptSide(msgspec.Struct, frozen=True, kw_only=True):
    """What computing the prompt costs on each prefill endpoint; arrays of shape `(p,)`."""

    wait: Floats
    prefill: Floats
    first_step: Floats
    capacity: Floats
    total: Floats


class Quote:
    """Prices of one request at one moment: the state of all endpoints is read once."""

    def __init__(
        self,
        table: EndpointTable,
        demand: Demand,
        parameters: ConsortParameters,
        *,
        now: float,
    ) -> None:
        self._table = table
        self._demand = demand
        self._parameters = parameters
        prompt, output = demand.prompt_tokens, demand.output_tokens
        others = table.others
        self.sequences: Floats = table.sequences + others
        # Other people's requests are taken to be like this one: nothing better is known of them.
        context = table.context_tokens + others * prompt
        self.step: Floats = table.step_seconds + (
            table.step_seconds_per_sequence * self.sequences
            + table.step_seconds_per_context_token * context
        )
        self.seconds_per_token = table.prefill_seconds_per_token
        slowness = _slowness(table, now=now)
        if slowness is not None:
            self.step = self.step * slowness
            self.seconds_per_token = self.seconds_per_token * slowness
        ahead = table.prefill_tokens + table.others_waiting * prompt
        self.queued: Floats = ahead * self.seconds_per_token
        work = prompt - demand.hit_tokens
        self.admission = self._admission(work)
        self.wait: Floats = self.queued + self.admission
        """Seconds before an endpoint begins with this request, shape `(n,)`."""
        self._prefill: Floats = work * self.seconds_per_token
        self._added: Floats = table.step_seconds_per_sequence + (
            table.step_seconds_per_context_token * (prompt + output / 2)
        )
        """How much longer a step gets with this request in the batch."""
        remaining = np.minimum(table.remaining_tokens, table.sequences * output)
        self._slowed: Floats = remaining * self._added
        """Seconds that the sequences in flight lose by the longer step."""

    def local(self) -> PriceTerms:
        """Price of computing the prompt where it is decoded, for every row of the table."""
        table, parameters, prefill = self._table, self._parameters, self._prefill
        terms = PriceTerms.empty(len(table))
        lines = terms.values
        lines[_WAIT] = self.wait
        lines[_PREFILL] = prefill
        np.multiply(table.first_step_factor, self.step, out=lines[_FIRST_STEP])
        tpot = np.add(self.step, self._added, out=lines[_TPOT])
        decode = np.multiply(tpot, self._demand.output_tokens, out=lines[_DECODE])
        stalled = (table.requests + table.others) * prefill
        np.multiply(self._slowed + stalled, parameters.harm_weight, out=lines[_HARM])
        crowd = parameters.capacity_weight + self.sequences * (parameters.capacity_weight / CROWD)
        np.multiply(prefill, crowd, out=lines[_CAPACITY])
        if parameters.money_weight > 0:
            seconds = prefill + decode / (self.sequences + 1.0)
            lines[_MONEY] = _money(table.price_per_second, seconds, parameters)
        terms.add_up()
        return terms

    def prompt_side(self, rows: Rows) -> PromptSide:
        """Price of the prompt alone on prefill endpoints: nobody decodes there, so no harm."""
        table, weight = self._table, self._parameters.capacity_weight
        prefill, wait = self._prefill[rows], self.wait[rows]
        first_step = table.first_step_factor[rows] * self.step[rows]
        capacity = prefill * (weight + table.prefill_requests[rows] * (weight / CROWD))
        return PromptSide(
            wait=wait,
            prefill=prefill,
            first_step=first_step,
            capacity=capacity,
            total=wait + prefill + first_step + capacity,
        )

    def pairs(
        self, prompt: PromptSide, chosen: Rows, *, decode_rows: Rows, transfer: Floats
    ) -> PriceTerms:
        """Price of each decode endpoint with its best prefill endpoint; shape `(d,)`.

        `chosen` are positions in `prompt`, one per decode row. The destination's batch is not
        stalled by this prompt: harm is its longer step only.
        """
        parameters, step = self._parameters, self.step[decode_rows]
        terms = PriceTerms.empty(len(decode_rows))
        lines = terms.values
        np.add(prompt.wait[chosen], self.admission[decode_rows], out=lines[_WAIT])
        lines[_PREFILL] = prompt.prefill[chosen]
        np.add(prompt.first_step[chosen], step, out=lines[_FIRST_STEP])
        lines[_TRANSFER] = transfer
        tpot = np.add(step, self._added[decode_rows], out=lines[_TPOT])
        decode = np.multiply(tpot, self._demand.output_tokens, out=lines[_DECODE])
        np.multiply(self._slowed[decode_rows], parameters.harm_weight, out=lines[_HARM])
        lines[_CAPACITY] = prompt.capacity[chosen]
        if parameters.money_weight > 0:
            seconds = decode / (self.sequences[decode_rows] + 1.0)
            price = self._table.price_per_second[decode_rows]
            lines[_MONEY] = _money(price, seconds, parameters)
        terms.add_up()
        return terms

    def _admission(self, work: Floats) -> Floats:
        """Seconds until memory and a sequence are free; 0 where the capacity is unknown."""
        table, output = self._table, self._demand.output_tokens
        capacity, held = table.capacity_tokens, table.private_tokens
        # The engine counts shared prefixes too, our sum is fresher: the larger one is safe.
        used = np.fmax(held, table.kv_usage * capacity)
        short = np.fmax(used + work + (output - capacity), 0.0)
        over = np.maximum(self.sequences + (1.0 - table.max_sequences), 0.0)
        # Whatever is held at present is given back within one output's time.
        shares = short / np.maximum(held, self._demand.prompt_tokens) + over / table.max_sequences
        waits: Floats = shares * (output * self.step)
        return waits


def _slowness(table: EndpointTable, *, now: float) -> Floats | None:
    """Factor on the seconds of endpoints that are still ramping up; None when none is."""
    if not table.has_ramp:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = (now - table.first_seen_at) / table.ramp_seconds
    share = np.clip(np.where(table.ramp_seconds > 0, grown, 1.0), RAMP_FLOOR, 1.0)
    # The first request finds an idle machine; what a ramp limits is how many share it.
    return np.where(table.sequences > 0, 1.0 / share, 1.0)


def _money(price: Floats, seconds: Floats, parameters: ConsortParameters) -> Floats:
    """Marginal price in seconds; an unknown price counts as the dearest known one."""
    dearest = float(np.fmax.reduce(price, initial=0.0))
    cost: Floats = parameters.money_weight * np.where(np.isnan(price), dearest, price) * seconds
    return cost
