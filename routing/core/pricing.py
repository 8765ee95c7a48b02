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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.core.document import ConsortParameters
from routing.core.table import EndpointTable, Flags, Floats

Rows = NDArray[np.intp]

CROWD = 8.0
"""Sequences in flight at which work done again weighs double."""
RAMP_FLOOR = 0.1
"""Share of its speed that a fresh endpoint is given at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one request asks for, the same at every endpoint."""

    prompt_tokens: int
    output_tokens: int
    hit_tokens: Floats
    """Trusted tokens in each endpoint's cache, below `prompt_tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTerms:
    """Arrays of shape `(n,)` in seconds, one value per endpoint of the table."""

    wait: Floats
    prefill: Floats
    first_step: Floats
    transfer: Floats
    decode: Floats
    harm: Floats
    capacity: Floats
    money: Floats
    total: Floats
    tpot: Floats

    def ttft_at(self, row: int) -> float:
        """Expected seconds to the first token at one endpoint."""
        parts = (self.wait, self.prefill, self.first_step, self.transfer)
        return float(sum(part[row] for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSide:
    """What computing the prompt costs on each prefill endpoint; arrays of shape `(p,)`."""

    wait: Floats
    prefill: Floats
    first_step: Floats
    capacity: Floats
    total: Floats


def merged(local: PriceTerms, pairs: PriceTerms, *, rows: Rows, use: Flags) -> PriceTerms:
    """Local terms with those of the pairs put in at `rows[use]`."""
    at = rows[use]
    columns = {}
    for name in PriceTerms.__dataclass_fields__:
        column = getattr(local, name).copy()
        column[at] = getattr(pairs, name)[use]
        columns[name] = column
    return PriceTerms(**columns)


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
        self.admission = self._admission()
        self._prefill: Floats = (prompt - demand.hit_tokens) * self.seconds_per_token
        self._added: Floats = table.step_seconds_per_sequence + (
            table.step_seconds_per_context_token * (prompt + output / 2)
        )
        """How much longer a step gets with this request in the batch."""
        remaining = np.minimum(table.remaining_tokens, table.sequences * output)
        self._slowed: Floats = remaining * self._added
        """Seconds that the sequences in flight lose by the longer step."""

    @property
    def wait(self) -> Floats:
        """Seconds before an endpoint begins with this request, shape `(n,)`."""
        return self.queued + self.admission

    def local(self) -> PriceTerms:
        """Price of computing the prompt where it is decoded, for every row of the table."""
        table, demand, parameters = self._table, self._demand, self._parameters
        prefill, wait = self._prefill, self.wait
        tpot = self.step + self._added
        stalled = (table.requests + table.others) * prefill
        harm = parameters.harm_weight * (self._slowed + stalled)
        capacity = parameters.capacity_weight * prefill * (1.0 + self.sequences / CROWD)
        first_step = table.first_step_factor * self.step
        decode = demand.output_tokens * tpot
        own_seconds = prefill + decode / (self.sequences + 1.0)
        money = _money(table.price_per_second, own_seconds, parameters)
        return PriceTerms(
            wait=wait,
            prefill=prefill,
            first_step=first_step,
            transfer=np.zeros(len(table)),
            decode=decode,
            harm=harm,
            capacity=capacity,
            money=money,
            total=wait + prefill + first_step + decode + harm + capacity + money,
            tpot=tpot,
        )

    def prompt_side(self, rows: Rows) -> PromptSide:
        """Price of the prompt alone on prefill endpoints: nobody decodes there, so no harm."""
        table, prefill = self._table, self._prefill[rows]
        wait = self.queued[rows] + self.admission[rows]
        first_step = table.first_step_factor[rows] * self.step[rows]
        crowd = table.prefill_requests[rows] / CROWD
        capacity = self._parameters.capacity_weight * prefill * (1.0 + crowd)
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
        tpot = step + self._added[decode_rows]
        harm = parameters.harm_weight * self._slowed[decode_rows]
        wait = prompt.wait[chosen] + self.admission[decode_rows]
        prefill, capacity = prompt.prefill[chosen], prompt.capacity[chosen]
        first_step = prompt.first_step[chosen] + step
        decode = self._demand.output_tokens * tpot
        own_seconds = decode / (self.sequences[decode_rows] + 1.0)
        money = _money(self._table.price_per_second[decode_rows], own_seconds, parameters)
        return PriceTerms(
            wait=wait,
            prefill=prefill,
            first_step=first_step,
            transfer=transfer,
            decode=decode,
            harm=harm,
            capacity=capacity,
            money=money,
            total=wait + prefill + first_step + transfer + decode + harm + capacity + money,
            tpot=tpot,
        )

    def _admission(self) -> Floats:
        """Seconds until memory and a sequence are free; 0 where the capacity is unknown."""
        table, demand = self._table, self._demand
        capacity = table.capacity()
        # The engine counts shared prefixes too, our sum is fresher: the larger one is safe.
        used = np.fmax(table.private_tokens, table.kv_usage * capacity)
        fresh = demand.prompt_tokens - demand.hit_tokens + demand.output_tokens
        short = np.fmax(used + fresh - capacity, 0.0)
        over = np.maximum(self.sequences + 1.0 - table.max_sequences, 0.0)
        # Whatever is held now is given back within one output's time.
        held = np.maximum(table.private_tokens, demand.prompt_tokens)
        return (short / held + over / table.max_sequences) * (demand.output_tokens * self.step)


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
    if parameters.money_weight <= 0:
        return np.zeros(len(price))
    dearest = float(np.fmax.reduce(price, initial=0.0))
    return parameters.money_weight * np.where(np.isnan(price), dearest, price) * seconds
