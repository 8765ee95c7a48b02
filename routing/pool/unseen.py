"""Requests whose answers this router does not see: somebody else's proxy carries them.

Nobody tells their first token or their end. Their prompt counts as computed at the predicted time,
and their end is concluded from the engine's own counts, see `ended`.
"""

import math
from collections import Counter

from routing.core.lease import Lease
from routing.core.table import EndpointTable, Instance
from routing.pool.knowledge import Knowledge

TRAVEL_SECONDS = 0.1
"""From a pick until the engine counts its request; younger ones are not missed in a reading."""
LONG_SECONDS = 10.0
"""The same for a prompt that is computed elsewhere first, where nobody predicts how long."""


class UnseenAnswers:
    """See the module."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def begin(self, lease: Lease) -> None:
        """Nothing more will be told of an open lease until somebody concludes its end."""
        self._known.leases.lose_sight(lease)

    def ended(self) -> dict[Instance, int | None]:
        """How many leases of each instance its engine had not any more at its last reading.

        `None` where the engine has not said of late. Instances without open leases are left out.
        What ended since that reading makes the number smaller. Of what is missing of all processes
        and routers together, this one takes the share that it has of their leases.
        """
        table = self._known.table
        open_now, open_then = Counter[Instance](), Counter[Instance]()
        for lease, instance in self._known.leases.places():
            open_now[instance] += 1
            open_then[instance] += _arrival(lease, instance) <= table.observed_at[instance.row]
        return {
            instance: _missing(table, instance.row, own=open_then[instance], now=count)
            for instance, count in open_now.items()
        }


def _missing(table: EndpointTable, row: int, *, own: int, now: int) -> int | None:
    """`own` leases are old enough to be counted by the engine, `now` are open in all."""
    total = float(table.running[row] + table.waiting[row])
    if math.isnan(total):
        return None
    # The table has the sum of ours and of what others told.
    others = max(0.0, float(table.requests[row]) - now)
    missing = own + others - total
    if own == 0 or missing <= 0:
        return 0
    return min(own, round(missing * own / (own + others)))


def _arrival(lease: Lease, instance: Instance) -> float:
    """When an instance begins to count the request of a lease, at the latest as expected."""
    travel = TRAVEL_SECONDS
    if lease.prefill is not None and instance is lease.destination:
        seconds = lease.decision.predicted.ttft_seconds
        travel += seconds if math.isfinite(seconds) else LONG_SECONDS
    return lease.began_at + travel
