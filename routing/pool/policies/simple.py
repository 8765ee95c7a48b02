"""The policies that know no cache: random, round robin, least requests, power of two.

When a pair is allowed for the chosen destination, the prefill endpoint is chosen by the same rule.
"""

from collections.abc import Callable, Sequence

import numpy as np

from routing.core.lease import Lease
from routing.core.scoring import Context
from routing.core.table import EndpointTable
from routing.pool.policies.base import Ranking
from routing.pool.policies.memory import PolicyMemory

Order = Callable[[Context, Sequence[int]], list[int]]
"""Some rows, best first; at least one is given."""


class RulePolicy:
    """The same rule for both ends; it remembers nothing."""

    def __init__(self, order: Order, *, prefill: Order | None = None) -> None:
        self._order = order
        self._order_prefills = prefill or order
        self._memory = PolicyMemory({})

    @property
    def memory(self) -> PolicyMemory:
        """See PeerPolicy."""
        return self._memory

    def choose(self, context: Context) -> Ranking:
        """See PeerPolicy."""
        rows = self._order(context, context.rows.tolist())
        able = context.prefills_of(rows[0])
        return Ranking(rows=rows, prefill=self._order_prefills(context, able)[0] if able else -1)

    def began(self, lease: Lease, table: EndpointTable, *, now: float) -> None:
        """Nothing to remember: loads are the router's own leases."""

    def ended(self, lease: Lease) -> None:
        """Nothing to take back."""

    def forget(self) -> None:
        """Nothing to forget."""


def in_random_order(context: Context, rows: Sequence[int]) -> list[int]:
    """What kube-proxy does for many connections: each endpoint is as likely."""
    return [int(row) for row in context.rng.permutation(rows)]


class Turns:
    """Round robin: every choice moves on by one, whatever was chosen from."""

    def __init__(self) -> None:
        self._turn = 0

    def __call__(self, context: Context, rows: Sequence[int]) -> list[int]:
        start = self._turn % len(rows)
        self._turn += 1
        return [*rows[start:], *rows[:start]]


def fewest_requests(context: Context, rows: Sequence[int]) -> list[int]:
    """Fewest requests of this router in flight; equal loads are broken at random.

    Otherwise the first row would take every quiet moment.
    """
    luck = context.rng.random(len(rows))
    load = context.table.requests[list(rows)]
    return [int(rows[position]) for position in np.lexsort((luck, load))]


def power_of_two(context: Context, rows: Sequence[int]) -> list[int]:
    """Two at random, the one with fewer requests first; the rest follow at random."""
    order = in_random_order(context, rows)
    requests = context.table.requests
    if len(order) > 1 and requests[order[1]] < requests[order[0]]:
        order[0], order[1] = order[1], order[0]
    return order


def make_random() -> RulePolicy:
    """`random`."""
    return RulePolicy(in_random_order)


def make_round_robin() -> RulePolicy:
    """`round-robin`, with a turn for each end."""
    return RulePolicy(Turns(), prefill=Turns())


def make_least_requests() -> RulePolicy:
    """`least-requests`."""
    return RulePolicy(fewest_requests)


def make_power_of_two() -> RulePolicy:
    """`power-of-two`."""
    return RulePolicy(power_of_two)
