"""What is on its way to each endpoint: requests per second, and prompt tokens to compute.

A prediction for an answer of ten seconds is about requests that have not come yet. Their rate is
known well for the endpoints of one class and role together, among which the policy spreads them,
and badly for each alone; so an endpoint gets its class's recent rate by its own share over a longer
time, which is drawn to an equal one. Both are exponentially weighted means, begun anew when the
pool was idle.

A cache that fills makes prompts cheaper from one second to the next. `prompt_fading` is how fast:
the logarithm of the slow mean of uncached tokens per request over the fast one, by the difference
of the two means' ages. It never tells of growth, which chance would often look like.
"""

import math

import numpy as np
from numpy.typing import NDArray

from routing.core.lease import Lease
from routing.core.table import EndpointTable, Floats

STEP_SECONDS = 0.25
"""Counts are looked at no more often."""
FAST_SECONDS, SLOW_SECONDS = 4.0, 10.0
"""An answer takes some seconds; shares within a class change more slowly than its rate."""
EQUAL_REQUESTS = 20.0
"""An endpoint's own share counts as much as an equal one after so many requests."""
FADING_REQUESTS = 20.0
"""Requests in the fast mean at which half of an apparent fading is believed."""
MOST_GAP_SECONDS = 5.0
"""Between two looks; nobody looks at a pool that gets no requests."""
_LEAST_AGE_SECONDS = 0.5


class _Mean:
    """Exponentially weighted rates of one time constant, shape `(2, n)`: requests and tokens."""

    def __init__(self, seconds: float, count: int) -> None:
        self.seconds = seconds
        self.sums: Floats = np.zeros((2, count))
        self.weight = 0.0
        self._aged = 0.0

    def add(self, rates: Floats, elapsed: float) -> None:
        keep = math.exp(-elapsed / self.seconds)
        self.sums *= keep
        self.sums += rates * (1.0 - keep)
        self._aged = keep * (self._aged + self.weight * elapsed) + (1.0 - keep) * elapsed / 2
        self.weight = keep * self.weight + 1.0 - keep

    @property
    def age(self) -> float:
        """Mean age of what is in it, seconds."""
        return self._aged / self.weight

    @property
    def tokens_per_request(self) -> float:
        requests, tokens = self.sums.sum(axis=1).tolist()
        return tokens / requests if requests > 0 else 0.0


class Arrivals:
    """Counts what begins; fills `arrival_rate`, `prompt_rate` and `prompt_fading` of the table."""

    def __init__(self) -> None:
        self._table: EndpointTable | None = None
        self._groups: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._at = 0.0
        self._counts: Floats = np.zeros((2, 0))
        self._means = (_Mean(FAST_SECONDS, 0), _Mean(SLOW_SECONDS, 0))

    def follow(self, table: EndpointTable) -> None:
        """Take another table; instances that stay keep their counts."""
        old = {} if self._table is None else _rows(self._table)
        rows = [(row, old[one]) for one, row in _rows(table).items() if one in old]
        here, there = [row for row, _ in rows], [row for _, row in rows]
        self._table, count = table, len(table)
        self._counts = _moved(self._counts, count, here, there)
        for mean in self._means:
            mean.sums = _moved(mean.sums, count, here, there)
        kinds = [(one.spec.speed_class, one.spec.role) for one in table.instances]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        self._groups = np.array([numbers[kind] for kind in kinds], dtype=np.intp)

    def forget(self) -> None:
        """Nothing has come yet."""
        self._counts[:] = 0.0
        count = self._counts.shape[1]
        self._means = (_Mean(FAST_SECONDS, count), _Mean(SLOW_SECONDS, count))

    def began(self, lease: Lease) -> None:
        """A request was sent: one for the destination, its work for who computes the prompt."""
        self._counts[0, lease.destination.row] += 1.0
        self._counts[1, lease.prompt_instance.row] += lease.work_tokens

    def is_due(self, *, now: float) -> bool:
        """Whether a step has passed since the columns were brought up to date."""
        return now - self._at >= STEP_SECONDS

    def refresh(self, table: EndpointTable, *, now: float, multiple: float = 1.0) -> None:
        """Bring the columns up to date; `multiple` is all routers' load over this one's."""
        if not self.is_due(now=now):
            return
        elapsed = now - self._at
        self._at = now
        if not self._counts[0].any() and not table.sequences.any():
            self.forget()
            table.arrival_rate[:] = table.prompt_rate[:] = table.prompt_fading[:] = 0.0
            table.arriving_seconds[:] = 0.0
            return
        table.arriving_seconds += min(elapsed, MOST_GAP_SECONDS)
        rates = self._counts * (multiple / elapsed)
        self._counts[:] = 0.0
        for mean in self._means:
            mean.add(rates, elapsed)
        self._fill(table)

    def _fill(self, table: EndpointTable) -> None:
        fast, slow = self._means
        fading = self._fading()
        usable = table.is_ready & np.isneginf(table.open_until)
        own = np.where(usable, slow.sums[0] * SLOW_SECONDS + EQUAL_REQUESTS, 0.0)
        totals = np.bincount(self._groups, own)
        shares = own / np.maximum(totals, EQUAL_REQUESTS)[self._groups]
        requests, tokens = (np.bincount(self._groups, line) for line in fast.sums / fast.weight)
        table.arrival_rate[:] = requests[self._groups] * shares
        faded = math.exp(-fading * fast.age)
        table.prompt_rate[:] = tokens[self._groups] * shares * faded
        table.prompt_fading[:] = fading

    def _fading(self) -> float:
        fast, slow = self._means
        recent, before = fast.tokens_per_request, slow.tokens_per_request
        if not before > recent > 0:
            return 0.0
        count = float(fast.sums[0].sum()) * fast.seconds
        known = count / (count + FADING_REQUESTS)
        return known * math.log(before / recent) / (slow.age - fast.age + _LEAST_AGE_SECONDS)


def _rows(table: EndpointTable) -> dict[int, int]:
    return {id(instance): row for row, instance in enumerate(table.instances)}


def _moved(old: Floats, count: int, here: list[int], there: list[int]) -> Floats:
    moved: Floats = np.zeros((len(old), count))
    moved[:, here] = old[:, there]
    return moved
