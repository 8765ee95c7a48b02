"""The price of every endpoint for one request, in seconds, term by term.

For a prompt of N tokens and an expected output of O tokens on endpoint e:

    work      = N - hit                      hit = trust * tokens in e's cache
    step      = a + b * sequences + c * context tokens
    rate      = p + q * N / 2 + steps per token * step          seconds per prompt token
    wait      = queued prefill tokens * rate, less what of the first is probably computed
                + wait for memory and for a free sequence
    prefill   = work * rate + q * work * hit / 2
    load      = seconds to bring the part of the hit that is in a lower tier to the device
    first step = first-step factor * step + way there and back
    ttft      = wait + prefill + load + first step + transfer (pairs only) + warm-up (fresh ones)
    tpot      = (step + b + c * (N + O / 2)) * stretch          stretch: prompts of others between
    decode    = O * tpot
    harm      = output that others in flight still expect * (b + c * (N + O / 2))
                + sequences in flight * prefill           (only where prefill and decode share e)
    capacity  = beta * prefill * (1 + sequences / 8)      work done again is taken from everybody
                + beta * seconds on the wire * (1 + sequences / 8)                  (pairs only)
    slo       = slo_weight * fade * (excess of ttft + O * excess of tpot over the targets)
    total     = ttft + decode + harm_weight * harm + capacity + slo + money_weight * marginal price

Own time plus harm is the change of the pool's total latency. In a model of three vendors' endpoints
at 85 requests/s, dropping harm cost 14 % of the throughput, one speed for all classes 38 %; beta 10
was the best of 3, 10, 30 and 100 over all workloads tried. The wait for memory is the missing KV
tokens over the rate at which running sequences give theirs back; it was worth 2 to 3 % at overload.

For pairs the same weight on what is moved keeps a prefix at few destinations: without it, 40
requests/s on three vendors with Gaudi 3 prefilling for H100-NVL filled the memory and the links of
the H100-NVL (time to the first token 5 s there; 0.2 s with it).

The fade of the penalty goes to 0 as the best endpoint's own excess reaches the target: where nobody
can meet it, effort would be spent on requests that are lost anyway.

A signal that is unknown takes part as neutral: no capacity figure, no wait for memory.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from routing.core.document import ConsortParameters
from routing.core.price_terms import (
    CAPACITY,
    DECODE,
    FIRST_STEP,
    HARM,
    LOAD,
    MONEY,
    PREFILL,
    SLO,
    TERMS,
    TOTAL,
    TPOT,
    TRANSFER,
    WAIT,
    WARM_UP,
    BestTerms,
    Demand,
    Gather,
    PairTerms,
    PriceTerms,
    Rows,
)
from routing.core.table import EndpointTable, Flags, Floats

__all__ = ["TERMS", "BestTerms", "Demand", "PriceTerms", "PromptSide", "Quote", "Rows"]

CROWD = 8.0
"""Sequences in flight at which work done again weighs double."""
RAMP_FLOOR = 0.1
"""Share of its speed that a fresh endpoint is given at once."""


class PromptSide(msgspec.Struct, frozen=True, kw_only=True):
    """What computing the prompt costs on each prefill endpoint."""

    rows: Rows
    """The endpoints' rows in the table, shape `(p,)`."""
    capacity: Floats
    total: Floats
    ready: Floats
    """Seconds until the prompt is computed."""

    def only(self, few: Rows) -> "PromptSide":
        """Some of them."""
        return PromptSide(
            rows=self.rows[few],
            capacity=self.capacity[few],
            total=self.total[few],
            ready=self.ready[few],
        )


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
        self.table = table
        self._demand = demand
        self._parameters = parameters
        prompt, output = demand.prompt_tokens, demand.output_tokens
        self.sequences, self._requests, context, ahead = _loads(table, prompt)
        self.step: Floats = table.step_seconds + (
            table.step_seconds_per_sequence * self.sequences
            + table.step_seconds_per_context_token * context
        )
        self.seconds_per_token: Floats = table.prefill_seconds_per_token + (
            table.prefill_seconds_per_token_and_context * (prompt / 2)
            + table.prefill_steps_per_token * self.step
        )
        slowness = _slowness(table, now=now)
        if slowness is not None:
            self.step = self.step * slowness
            self.seconds_per_token = self.seconds_per_token * slowness
        work = prompt - demand.hit_tokens
        queued, admission = self._queued(ahead, now=now), self._admission(work)
        self.admission: Floats = np.zeros(len(work)) if admission is None else admission
        self.wait: Floats = self.admission if queued is None else queued
        """Seconds before an endpoint begins with this request, shape `(n,)`."""
        if queued is not None and admission is not None:
            self.wait = queued + admission
        self._has_admission = admission is not None
        self._has_waits = queued is not None or self._has_admission
        self._prefill = self._prefill_seconds(work)
        loads = demand.load_seconds
        self._load: Floats | None = None if loads is None else loads * table.load_factor
        self._added: Floats = table.step_seconds_per_sequence + (
            table.step_seconds_per_context_token * (prompt + output / 2)
        )
        """How much longer a step gets with this request in the batch."""
        self._slowed = self._slowing()
        self._local: PriceTerms | None = None
        # Set with the local terms: the first step with the warm-up, and all until the first token.
        self._ready = self._before = self.wait

    def _slowing(self) -> Floats:
        """Weighted seconds that the sequences in flight lose by the longer step."""
        table, weight = self.table, self._parameters.harm_weight
        lost: Floats = table.sequences * self._demand.output_tokens
        np.minimum(table.remaining_tokens, lost, out=lost)
        lost *= self._added
        if weight != 1.0:
            lost *= weight
        return lost

    def _prefill_seconds(self, work: Floats) -> Floats:
        # Half of q * hit is what a token attends to in the cache beyond its own prompt's mean.
        seconds: Floats = self._demand.hit_tokens * 0.5
        seconds *= self.table.prefill_seconds_per_token_and_context
        seconds += self.seconds_per_token
        seconds *= work
        return seconds

    def _queued(self, ahead: Floats, *, now: float) -> Floats | None:
        """Seconds of prompts ahead, less what is probably computed of the one at work."""
        if not np.count_nonzero(ahead):
            return None
        table = self.table
        queued: Floats = ahead * self.seconds_per_token
        # Other routers' prompts have no order here: the mean is all that is known of the first.
        first = queued / np.maximum(table.prefill_requests, 1.0)
        np.maximum(first, table.head_tokens * self.seconds_per_token, out=first)
        queued -= np.minimum(np.minimum(now - table.prompt_moved_at, first), queued)
        return queued

    def local(self) -> PriceTerms:
        """Price of computing the prompt where it is decoded, for every row of the table."""
        table, parameters, prefill = self.table, self._parameters, self._prefill
        lines: list[Floats | None] = [None] * (TPOT + 1)
        before = self._before_decoding(lines)
        lines[TPOT] = tpot = self.step + self._added
        tpot *= table.stretch
        lines[DECODE] = decode = tpot * self._demand.output_tokens
        lines[HARM] = harm = self._requests * prefill
        if parameters.harm_weight != 1.0:
            harm *= parameters.harm_weight
        harm += self._slowed
        lines[CAPACITY] = capacity = self.sequences * (parameters.capacity_weight / CROWD)
        capacity += parameters.capacity_weight
        capacity *= prefill
        lines[TOTAL] = total = before + decode
        total += harm
        total += capacity
        if parameters.money_weight > 0:
            seconds = prefill + decode / (self.sequences + 1.0)
            lines[MONEY] = money = _money(table.price_per_second, seconds, parameters)
            total += money
        self._local = PriceTerms(total, lines=lines)
        return self._local

    def _before_decoding(self, lines: list[Floats | None]) -> Floats:
        """Fill the terms until the first token, and add them up."""
        table = self.table
        lines[WAIT], lines[PREFILL], lines[LOAD] = self.wait, self._prefill, self._load
        lines[FIRST_STEP] = self._ready = table.first_step_factor * self.step
        self._ready += table.network_seconds
        if table.has_cold:
            lines[WARM_UP] = warm_up = table.warm_up_seconds.copy()
            self._ready = self._ready + warm_up
        self._before = before = self._prefill + self._ready
        if self._has_waits:
            before += self.wait
        if self._load is not None:
            before += self._load
        return before

    def prompt_side(self, rows: Rows) -> PromptSide:
        """Price of the prompt alone on prefill endpoints: nobody decodes there, so no harm."""
        if self._local is None:
            self.local()
        capacity = self.table.prefill_requests[rows]
        capacity *= self._parameters.capacity_weight / CROWD
        capacity += self._parameters.capacity_weight
        capacity *= self._prefill[rows]
        total = self._before[rows]
        total += capacity
        return PromptSide(rows=rows, capacity=capacity, total=total, ready=self._before[rows])

    def pairs(
        self,
        prompt: PromptSide,
        chosen: Rows,
        *,
        decode_rows: Rows,
        transfer: Floats,
        moving: Floats,
    ) -> PriceTerms:
        """Price of each decode endpoint with its best prefill endpoint; shape `(d,)`.

        `chosen` are positions in `prompt`, one per decode row. The destination's batch is not
        stalled by this prompt: harm is its longer step only. `moving` are the seconds of `transfer`
        on the wire: what is moved where others have it takes link and memory from everybody, as
        computing it again would.
        """
        local, parameters = self._local or self.local(), self._parameters
        capacity = self.sequences[decode_rows] * (parameters.capacity_weight / CROWD)
        capacity += parameters.capacity_weight
        # What may not be used has an infinite transfer already.
        capacity *= np.where(np.isfinite(moving), moving, 0.0)
        total = capacity + prompt.total[chosen]
        capacity += prompt.capacity[chosen]
        own: dict[int, Gather] = {
            TRANSFER: (transfer, None),
            HARM: (self._slowed, decode_rows),
            CAPACITY: (capacity, None),
        }
        decoding = self._ready + local.line(DECODE)
        decoding += self._slowed
        if self._has_admission:
            decoding += self.admission
        total += decoding[decode_rows]
        total += transfer
        if parameters.money_weight > 0:
            seconds = local.line(DECODE)[decode_rows] / (self.sequences[decode_rows] + 1.0)
            money = _money(self.table.price_per_second[decode_rows], seconds, parameters)
            own[MONEY] = (money, None)
            total += money
        own[TOTAL] = (total, None)
        return PairTerms(
            local,
            sources=prompt.rows[chosen],
            decode_rows=decode_rows,
            admission=self.admission,
            own=own,
            total=total,
        )

    def crowded(self, tpot_seconds: float) -> Flags | None:
        """Endpoints whose steps would be longer than this with the request in their batch, though
        they keep it for fewer; `None` where there is none.

        Prompts that are computed meanwhile stretch steps, too, and are not counted: they pass, and
        no batch is small enough to keep them out.
        """
        crowded: Flags = self.step + self._added > tpot_seconds
        if not np.count_nonzero(crowded):
            return None
        crowded &= self.table.step_seconds + self._added <= tpot_seconds
        return crowded if np.count_nonzero(crowded) else None

    @property
    def has_targets(self) -> bool:
        """Whether the request is meant to meet any."""
        demand = self._demand
        return demand.ttft_target is not None or demand.tpot_target is not None

    def penalise(self, ways: Sequence[tuple[PriceTerms, Rows]]) -> None:
        """Add the penalty for missed targets to each way of serving.

        Each way comes with the columns that may be chosen; they alone say what can be met.
        """
        demand = self._demand
        aim = (demand.ttft_target or 0.0) + (demand.tpot_target or 0.0) * demand.output_tokens
        excesses = [_excess(terms, demand) for terms, _ in ways]
        least = min(
            float(excess[columns].min(initial=np.inf))
            for excess, (_, columns) in zip(excesses, ways, strict=True)
        )
        fade = max(0.0, 1.0 - least / aim) if aim > 0 else 0.0
        for excess, (terms, _) in zip(excesses, ways, strict=True):
            # Who cannot be used at all has an infinite price already.
            excess[~np.isfinite(excess)] = 0.0
            terms.values[SLO] = excess * (self._parameters.slo_weight * fade)
            terms.values[TOTAL] += terms.values[SLO]

    def _admission(self, work: Floats) -> Floats | None:
        """Seconds until memory and a sequence are free; 0 where the capacity is unknown."""
        table, output = self.table, self._demand.output_tokens
        capacity, held = table.capacity_tokens, table.private_tokens
        # The engine counts shared prefixes too, our sum is fresher: the larger one is safe.
        used = table.kv_usage * capacity
        # Who waits in the engine holds nothing yet and comes first; taken to be like this one.
        used += np.fmax(table.waiting, 0.0) * (work + output)
        np.fmax(held, used, out=used)
        used += work
        used -= capacity
        # Comparisons with NaN, an unknown capacity, are false.
        if not (
            np.count_nonzero(used > -output)
            or np.count_nonzero(self.sequences >= table.max_sequences)
        ):
            return None
        short, over = used + output, self.sequences - table.max_sequences
        # Whatever is held at present is given back within one output's time.
        shares = np.fmax(short, 0.0) / np.maximum(held, self._demand.prompt_tokens)
        shares += np.maximum(over + 1.0, 0.0) / table.max_sequences
        waits: Floats = shares * (output * self.step)
        return waits


def _loads(table: EndpointTable, prompt: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Sequences, requests, context tokens and queued prompt tokens, with other people's.

    Their requests are taken to be like this one, unless the engine counts the tokens that wait.
    """
    others = table.others
    if not np.count_nonzero(others):
        return table.sequences, table.requests, table.context_tokens, table.prefill_tokens
    return (
        table.sequences + others,
        table.requests + others,
        table.context_tokens + others * prompt,
        table.prefill_tokens
        + np.where(
            np.isnan(table.others_tokens), table.others_waiting * prompt, table.others_tokens
        ),
    )


def _excess(terms: PriceTerms, demand: Demand) -> Floats:
    """Seconds over the targets, over the whole output."""
    lines = terms.values
    excess: Floats = np.zeros(lines.shape[1])
    if demand.ttft_target is not None:
        ttft = lines[WAIT : WARM_UP + 1].sum(axis=0)
        excess += np.maximum(ttft - demand.ttft_target, 0.0)
    if demand.tpot_target is not None:
        over = np.maximum(lines[TPOT] - demand.tpot_target, 0.0)
        excess += over * demand.output_tokens
    return excess


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
