"""From a problem to advice: share out, enumerate splits, bound them, simulate the best few.

A split is advised only if its simulated goodput is at least LEAST_GAIN above the best placement
without it, whatever rates between those that were tried would give; the same arrivals and seed are
used for all options of a pool. Otherwise the advice is
to leave things as they are, or to give every engine both phases, and says why.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from routing.planner import reasons
from routing.planner.accuracy import ENGINE_MODEL, MODEL_ERROR
from routing.planner.advice import (
    Bound,
    Kind,
    Option,
    Plan,
    PoolAdvice,
    Reason,
    Refused,
    Verdict,
)
from routing.planner.engines import Engine
from routing.planner.estimate import Estimate, estimate, load_of
from routing.planner.placement import (
    Placement,
    Share,
    accelerators_in,
    can_answer,
    cost_per_hour,
    moves_between,
    watts_at_most,
)
from routing.planner.problem import Demand, Problem
from routing.planner.sharing import Fit, Shared, fits_of, share_out
from routing.planner.splits import all_both, splits_of
from routing.planner.sustain import Sustained, leads, settle
from routing.planner.trial import Outcome, Trial

LEAST_GAIN = 0.10
"""Goodput that a change must win to be advised: the design's bar. It is less than the model's error
of one figure; options share arrivals, seed and model, and with them part of that error."""
SPLITS = 2
"""Splits of a pool that are simulated: the best, and the best with another group at prefill."""
REQUESTS = 16_000
"""Requests of all candidates together, each tried once: about 20 s of one core."""
MOST_REQUESTS = 4_000
"""Of one simulation."""
NARROWING = 40
"""Simulations beyond the first ones of each placement, for comparisons, of all pools together."""
MOST_NARROWING = 8
"""The same, of one pool."""
_PRICE_STEP = Decimal("0.0001")

Progress = Callable[[int, int], None]
"""Called with placements that were tried and pools that were judged, and how many there are."""


def advise(
    problem: Problem,
    *,
    seed: int,
    requests: int = REQUESTS,
    progress: Progress = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Plan:
    """The plan of a fleet; equal problems and seeds give equal plans.

    `requests` bounds the work: requests in virtual time if each candidate is tried once.

    Raises Cancelled when `should_stop` says so; nothing is half done then.
    """
    shared = share_out(problem)
    searches = [_Search(problem, demand, shared) for demand in problem.demands]
    placements = sum(len(search.candidates) for search in searches)
    each = min(MOST_REQUESTS, requests // max(1, placements))
    total = placements + len(searches)
    left = NARROWING
    done = simulated = 0
    progress(done, total)
    pools = []
    for search in searches:
        tried = []
        for candidate in search.candidates:
            tried.append(search.run(candidate, seed, each, should_stop))
            done += 1
            progress(done, total)
        before = sum(one.tries for one in tried)
        pools.append(search.advice(tried, min(MOST_NARROWING, left)))
        tries = sum(one.tries for one in tried)
        left -= tries - before
        simulated += tries
        done += 1
        progress(done, total)
    return Plan(
        pools=tuple(pools),
        seed=seed,
        currency=problem.currency,
        error=MODEL_ERROR,
        engine_model=ENGINE_MODEL,
        bounded=sum(search.bounded for search in searches),
        simulated=simulated,
        requests=each * simulated,
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    kind: Kind
    placement: Placement
    found: Estimate


class _Search:
    """One pool."""

    def __init__(self, problem: Problem, demand: Demand, shared: Shared) -> None:
        self._demand = demand
        self._groups = {group.name: group for group in problem.groups}
        self._fits = {
            group: fit for (pool, group), fit in shared.fits.items() if pool == demand.name
        }
        self._engines: Mapping[str, Engine] = {
            group: fit.engine for group, fit in self._fits.items()
        }
        self._refused = tuple(
            Refused(group=group, reason=reasons.refusal(refusal))
            for (pool, group), refusal in shared.refusals.items()
            if pool == demand.name
        )
        self._now = _now(demand, self._fits)
        self.bounded = 0
        self.candidates = self._candidates(shared.placements[demand.name])

    def run(
        self, candidate: _Candidate, seed: int, requests: int, should_stop: Callable[[], bool]
    ) -> Sustained:
        """Simulate one candidate."""
        trial = Trial(candidate.placement, self._engines, self._demand)
        found = Sustained(trial, seed=seed, requests=requests, should_stop=should_stop)
        found.begin()
        return found

    def _candidates(self, whole: Placement) -> list[_Candidate]:
        found: list[_Candidate] = []
        if self._now and can_answer(self._now):
            found.append(self._bounded("now", self._now))
        if whole and all_both(whole) != self._now:
            found.append(self._bounded("both", all_both(whole)))
        if whole and self._demand.may_split:
            taken = {candidate.placement for candidate in found}
            found += self._best_splits(whole, taken)
        return found

    def _best_splits(self, whole: Placement, taken: set[Placement]) -> list[_Candidate]:
        splits = [self._bounded("split", placement) for placement in splits_of(whole)
                  if placement not in taken]  # fmt: skip
        # Past the offered rate more capacity is worth less than fewer changes.
        splits.sort(key=lambda one: (-self._worth(one), moves_between(self._now, one.placement)))
        chosen: list[_Candidate] = []
        for one in splits:
            if one.found.capacity_rps <= 0 or len(chosen) == SPLITS:
                break
            if all(_prefillers(one.placement) != _prefillers(other.placement) for other in chosen):
                chosen.append(one)
        return chosen

    def _worth(self, candidate: _Candidate) -> float:
        return round(candidate.found.capacity_rps, 6)

    def _bounded(self, kind: Kind, placement: Placement) -> _Candidate:
        self.bounded += 1
        return _Candidate(kind, placement, estimate(placement, self._engines, self._demand))

    # Judging.

    def advice(self, tried: Sequence[Sustained], narrowing: int) -> PoolAdvice:
        """What to do with the pool, after `narrowing` simulations at most. Raises Cancelled."""
        kinds = [candidate.kind for candidate in self.candidates]
        _settle(kinds, tried, narrowing)
        pairs = zip(self.candidates, tried, strict=True)
        options = [self._option(candidate, found.best) for candidate, found in pairs]
        if not options:
            return self._answer("impossible", None, [], (reasons.nothing_fits(self._refused),))
        plain = [option for option in options if option.kind != "split"]
        splits = [option for option in options if option.kind == "split"]
        base = _best(plain) if plain else None
        best = _best(splits) if splits else None
        if best is not None and (base is None or _leads(best, base)):
            why = reasons.split_wins(best, base)
            return self._answer("split", best, options, why, _gain(best, base) if base else None)
        verdict, chosen, gain = self._plain(plain, base or options[0])
        why = (
            *reasons.plain_choice(verdict, chosen, plain, self._demand),
            *reasons.no_split(chosen, best, self._demand, self._engines),
        )
        return self._answer(verdict, chosen, options, why, gain)

    def _plain(self, plain: Sequence[Option], base: Option) -> tuple[Verdict, Option, float | None]:
        """Today's roles unless every engine at both phases wins enough."""
        now = next((option for option in plain if option.kind == "now"), None)
        if now is None:
            return "both", base, None
        if base is not now and _leads(base, now):
            return "both", base, _gain(base, now)
        return "keep", now, None

    def _answer(
        self,
        verdict: Verdict,
        chosen: Option | None,
        options: Sequence[Option],
        why: tuple[Reason, ...],
        gain: float | None = None,
    ) -> PoolAdvice:
        target = self._demand.target
        others = [option for option in options if option is not chosen]
        return PoolAdvice(
            pool=self._demand.name,
            model=self._demand.model,
            verdict=verdict,
            chosen=chosen,
            alternatives=tuple(
                reasons.with_comparison(option, chosen, self._demand)
                for option in sorted(others, key=lambda one: -_goodput(one))
            ),
            reasons=why,
            refused=self._refused,
            offered_rps=self._demand.traffic.rate_qps,
            ttft_target_seconds=target.ttft_seconds,
            tpot_target_seconds=target.tpot_seconds,
            gain=gain,
        )

    def _option(self, candidate: _Candidate, outcome: Outcome) -> Option:
        cost = cost_per_hour(candidate.placement, self._groups)
        found = candidate.found
        return Option(
            kind=candidate.kind,
            placement=candidate.placement,
            bound=Bound(
                capacity_rps=found.capacity_rps,
                limited_by=found.limited_by,
                ttft_seconds=found.ttft_seconds,
                tpot_seconds=found.tpot_seconds,
                hit_share=found.hit_share,
            ),
            outcome=outcome,
            accelerators=accelerators_in(candidate.placement),
            moves=moves_between(self._now, candidate.placement),
            cost_per_hour=None if cost is None else str(cost),
            cost_per_million_output=_per_million(cost, outcome.output_tokens_per_s),
            watts_at_most=watts_at_most(candidate.placement, self._groups),
        )


def _now(demand: Demand, fits: Mapping[str, Fit]) -> Placement:
    shares = []
    for group, roles in demand.now.items():
        width = fits[group].engine.width if group in fits else 0
        # Engines of today have one accelerator each, unless the model needs more.
        if width and roles.total:
            share = Share(
                group=group,
                width=width,
                prefill=roles.prefill // width,
                decode=roles.decode // width,
                both=roles.both // width,
            )
            if share.engines:
                shares.append(share)
    return tuple(shares)


def _prefillers(placement: Placement) -> frozenset[str]:
    return frozenset(share.group for share in placement if share.prefill)


def _goodput(option: Option) -> float:
    return option.outcome.goodput_rps if option.outcome else 0.0


def _settle(kinds: Sequence[Kind], tried: Sequence[Sustained], tries: int) -> None:
    """Make the comparisons that advice rests on sure: both phases against now, then splits against
    the better of these until one leads. Raises Cancelled."""
    options = list(zip(kinds, tried, strict=True))
    plain = [one for kind, one in options if kind != "split"]
    splits = sorted((one for kind, one in options if kind == "split"), key=_least)
    if len(plain) > 1:
        now, both = plain
        tries -= settle(both, now, least_gain=LEAST_GAIN, tries=tries)
    for split in splits if plain else ():
        base = min(plain, key=_least)
        tries -= settle(split, base, least_gain=LEAST_GAIN, tries=tries)
        if leads(split.best, base.best, least_gain=LEAST_GAIN):
            break


def _least(tried: Sustained) -> float:
    """Sorts by goodput, the most first."""
    return -tried.best.goodput_rps


def _leads(better: Option, base: Option) -> bool:
    if better.outcome is None or base.outcome is None:
        return False
    return leads(better.outcome, base.outcome, least_gain=LEAST_GAIN)


def _best(options: Sequence[Option]) -> Option:
    """Most goodput; of equal ones the first, which changes least."""
    return max(options, key=lambda option: round(_goodput(option), 9))


def _gain(better: Option, base: Option) -> float | None:
    """`None` where the base answers nothing in time: there is nothing to compare with."""
    before = _goodput(base)
    return _goodput(better) / before - 1 if before > 0 else None


def _per_million(cost: Decimal | None, tokens_per_second: float) -> str | None:
    if cost is None or tokens_per_second <= 0:
        return None
    millions = Decimal(repr(tokens_per_second)) * 3600 / 1_000_000
    return str((cost / millions).quantize(_PRICE_STEP, ROUND_HALF_EVEN))


def present_load(problem: Problem) -> float:
    """Offered rate over the bound of today's roles, of the pool that is worst off; modelled.

    Infinite where a pool has no roles or keeps its target at no rate.
    """
    fits, _ = fits_of(problem)
    worst = 0.0
    for demand in problem.demands:
        own = {group: fit for (pool, group), fit in fits.items() if pool == demand.name}
        now = _now(demand, own)
        if not now:
            return math.inf
        engines = {group: fit.engine for group, fit in own.items()}
        worst = max(worst, load_of(estimate(now, engines, demand), demand))
    return worst


def gain_over_now(advice: PoolAdvice) -> float | None:
    """Goodput of the advice over that of today's roles, minus 1; `None` without either, or where
    today's roles answer nothing in time."""
    if advice.chosen is None:
        return None
    if advice.chosen.kind == "now":
        return 0.0
    now = next((option for option in advice.alternatives if option.kind == "now"), None)
    return None if now is None else _gain(advice.chosen, now)
