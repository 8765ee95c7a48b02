"""The goodput that a placement keeps up: at the offered rate, or at the largest it can do.

A pool past its limit misses nearly every target, so that two overloaded options cannot be
compared. Where the offered rate is not kept, lower ones are tried, and the best goodput counts.
The limit lies between the largest rate that is kept and the smallest above it that is not. These
two are far apart at first, so that a lead could be an accident of the rates that were tried;
`settle` narrows them until the lead is sure, or sure not to be enough.
"""

import math
from collections.abc import Callable

import msgspec

from routing.planner.accuracy import RATE_RESOLUTION
from routing.planner.estimate import estimate
from routing.planner.trial import Outcome, Trial, simulate

GOOD = 0.9
"""Share of good requests from which a rate counts as kept."""
STEP = 0.8
"""From the first rate to the next; each step after it is the last one squared, since a bound may be
several times too good."""
MOST_TRIES = 4
"""Simulations until a kept rate is found; they end at a fifth of the first rate."""

Stop = Callable[[], bool]


class Sustained:
    """What was found at the rates that were tried for one placement; simulated."""

    def __init__(
        self, trial: Trial, *, seed: int, requests: int, should_stop: Stop = lambda: False
    ) -> None:
        self._trial = trial
        self._seed, self._requests, self._should_stop = seed, requests, should_stop
        self._offered = trial.demand.traffic.rate_qps
        self._found: list[Outcome] = []

    @property
    def tries(self) -> int:
        """Simulations so far."""
        return len(self._found)

    @property
    def spread(self) -> float:
        """Largest rate that may be kept over the largest that is: 1 where the offered rate is kept,
        infinite while none is."""
        kept = self._kept()
        return math.inf if kept is None else self._ceiling() / kept

    @property
    def best(self) -> Outcome:
        """The best goodput of all tries, and what it may still become."""
        best = max(self._found, key=lambda outcome: outcome.goodput_rps)
        found = best.goodput_rps
        most = self._ceiling()
        if self._kept() is not None:
            # A rate in between has no more good requests than it has requests.
            most = min(most, found * self.spread)
        return msgspec.structs.replace(best, goodput_at_most_rps=max(found, most))

    def begin(self) -> None:
        """Try lower and lower rates until one is kept. Raises Cancelled."""
        self._try(self._first())
        part = STEP
        while self._kept() is None and self.tries < MOST_TRIES:
            self._try(self._lowest() * part)
            part *= part

    def narrow(self) -> None:
        """One more try: above all that are kept, below all that are not. Raises Cancelled."""
        kept, missed = self._kept(), self._missed()
        if kept is None:
            self._try(self._lowest() / 2)
        elif missed is None:
            self._try(min(self._offered, kept / STEP))
        else:
            self._try(math.sqrt(kept * missed))

    def _try(self, rate: float) -> None:
        self._found.append(
            simulate(
                self._trial,
                rate=rate,
                seed=self._seed,
                requests=self._requests,
                should_stop=self._should_stop,
            )
        )

    def _kept(self) -> float | None:
        """Largest rate that is kept."""
        return max((one.rate_rps for one in self._found if one.good_share >= GOOD), default=None)

    def _missed(self) -> float | None:
        """Smallest rate above it that is not."""
        kept = self._kept() or 0.0
        return min((one.rate_rps for one in self._found if one.rate_rps > kept), default=None)

    def _ceiling(self) -> float:
        missed = self._missed()
        return self._offered if missed is None else missed

    def _lowest(self) -> float:
        return min(one.rate_rps for one in self._found)

    def _first(self) -> float:
        """The offered rate, or the first below it that is not far above the bound."""
        rate = self._offered
        trial = self._trial
        bound = estimate(trial.placement, trial.engines, trial.demand).capacity_rps
        while 0 < bound < rate:
            rate *= STEP
        return rate


def settle(better: Sustained, base: Sustained, *, least_gain: float, tries: int) -> int:
    """Narrow both until it is sure whether the one leads by `least_gain`, a share, or not.

    It ends, too, when both limits are known to RATE_RESOLUTION, or after `tries` simulations.
    Returns how many it took. Raises Cancelled.
    """
    used = 0
    while used < tries and not _is_sure(better.best, base.best, least_gain):
        wider = max((better, base), key=lambda one: one.spread)
        if wider.spread <= 1 + RATE_RESOLUTION:
            break
        wider.narrow()
        used += 1
    return used


def leads(better: Outcome, base: Outcome, *, least_gain: float) -> bool:
    """True if the lead is `least_gain` or more even if the base is as good as it may be."""
    return better.goodput_rps > 0 and better.goodput_rps >= (1 + least_gain) * _most(base)


def _is_sure(better: Outcome, base: Outcome, least_gain: float) -> bool:
    may_lead = _most(better) >= (1 + least_gain) * base.goodput_rps
    return leads(better, base, least_gain=least_gain) or not may_lead


def _most(outcome: Outcome) -> float:
    most = outcome.goodput_at_most_rps
    return outcome.goodput_rps if most is None else most
