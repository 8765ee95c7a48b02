"""`session-hash`: a session stays on one endpoint, by consistent hashing with 160 virtual nodes.

The ring holds every endpoint of the document under 160 hashes of its id; a request goes to the
first endpoint at or after the hash of its session (else a random place) that may serve it. So a
session moves only when its endpoint leaves, and comes back with it. The load plays no part.
"""

from bisect import bisect_left
from collections.abc import Sequence

import xxhash

from routing.core.scoring import Context
from routing.core.table import EndpointTable
from routing.pool.policies.simple import RulePolicy

VIRTUAL_NODES = 160
MOST_IN_ORDER = 16
"""Nobody has more fallbacks than a request has attempts; the ring is not walked further."""


class Ring:
    """See the module; it is built again for each table, from ids alone."""

    def __init__(self) -> None:
        self._table: EndpointTable | None = None
        self._points: list[int] = []
        self._rows: list[int] = []

    def __call__(self, context: Context, rows: Sequence[int]) -> list[int]:
        """Rows in the order of the ring, from the session's place on."""
        if context.table is not self._table:
            self._build(context.table)
        session = context.request.session
        if session:
            place = bisect_left(self._points, xxhash.xxh3_64_intdigest(session.encode()))
        else:
            place = int(context.rng.integers(len(self._points)))
        wanted, order = set(rows), []
        for step in range(len(self._rows)):
            row = self._rows[(place + step) % len(self._rows)]
            if row in wanted:
                wanted.discard(row)
                order.append(row)
                if not wanted or len(order) >= MOST_IN_ORDER:
                    break
        return order

    def _build(self, table: EndpointTable) -> None:
        digest = xxhash.xxh3_64_intdigest
        ring = sorted(
            (digest(f"{endpoint}#{number}".encode()), row)
            for row, endpoint in enumerate(table.ids)
            for number in range(VIRTUAL_NODES)
        )
        self._points = [point for point, _ in ring]
        self._rows = [row for _, row in ring]
        self._table = table


def make_session_hash() -> RulePolicy:
    """`session-hash`; the prefill end has its place on the same ring."""
    return RulePolicy(Ring())
