"""KV transfers under way per prefill/decode pair, and how many at once a failing pair may have.

A pair that never failed is not limited. When a transfer fails, the pair may have half as many at
once as it had then, at least one; each one that arrives allows one more, and from a number on the
limit is forgotten (additive increase, multiplicative decrease). So a link that breaks under load
is loaded less, and after its breaker closes one transfer at a time finds out whether it works.
"""

from collections import Counter
from collections.abc import Callable

from routing.core.lease import Lease
from routing.core.table import Instance

Pair = tuple[Instance, Instance]
UNLIMITED_FROM = 32
"""A pair that carries so many at once has recovered."""


class TransferBook:
    """Transfers by lease, so that each one ends exactly once whatever ends it."""

    def __init__(self, on_change: Callable[[Pair], None]) -> None:
        """`on_change` hears of pairs that may have become full, or have room again."""
        self._on_change = on_change
        self._of_lease: dict[int, Pair] = {}
        self._counts: Counter[Pair] = Counter()
        self._limits: dict[Pair, int] = {}

    def __len__(self) -> int:
        return len(self._of_lease)

    def begin(self, lease: Lease) -> None:
        """A request was sent to a pair; one without a prefill endpoint moves nothing."""
        if lease.prefill is None:
            return
        pair = lease.prefill, lease.destination
        self._of_lease[lease.number] = pair
        self._counts[pair] += 1
        self._look_at(pair)

    def arrive(self, lease: Lease) -> None:
        """The destination has the KV."""
        pair = self._end(lease)
        if pair is None or pair not in self._limits:
            return
        self._limits[pair] += 1
        if self._limits[pair] >= UNLIMITED_FROM:
            del self._limits[pair]
            self._on_change(pair)
        else:
            self._look_at(pair)

    def leave(self, lease: Lease) -> None:
        """The request ended, wherever its KV was."""
        self._end(lease)

    def fail(self, pair: Pair) -> None:
        """A transfer of the pair failed; call it before its lease ends."""
        at_once = self._counts[pair]
        known = self._limits.get(pair, UNLIMITED_FROM)
        self._limits[pair] = max(1, min(known, at_once) // 2)
        self._look_at(pair)

    def limit_of(self, pair: Pair) -> int | None:
        """Transfers that the pair may have at once; `None` is any number."""
        return self._limits.get(pair)

    def running(self, pair: Pair) -> int:
        """Transfers of the pair under way."""
        return self._counts[pair]

    def full(self) -> list[Pair]:
        """Limited pairs without room."""
        return [pair for pair in self._limits if self.is_full(pair)]

    def is_full(self, pair: Pair) -> bool:
        """No further transfer may begin."""
        limit = self._limits.get(pair)
        return limit is not None and self._counts[pair] >= limit

    def keep_alive_only(self) -> None:
        """Forget pairs with an end that is gone."""
        self._of_lease = {
            number: pair for number, pair in self._of_lease.items() if _is_alive(pair)
        }
        self._counts = Counter(self._of_lease.values())
        self._limits = {pair: limit for pair, limit in self._limits.items() if _is_alive(pair)}

    def _end(self, lease: Lease) -> Pair | None:
        pair = self._of_lease.pop(lease.number, None)
        if pair is not None:
            self._counts[pair] -= 1
            if not self._counts[pair]:
                del self._counts[pair]
            self._look_at(pair)
        return pair

    def _look_at(self, pair: Pair) -> None:
        if pair in self._limits:
            self._on_change(pair)


def _is_alive(pair: Pair) -> bool:
    return pair[0].is_alive and pair[1].is_alive
