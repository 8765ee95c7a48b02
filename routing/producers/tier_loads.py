"""How long KV takes to load from slower memory, per endpoint and kind of memory.

Stated in the document (`seconds_per_token` of a tier), or learned: when a prompt's hit lay in one
slower memory and the engine confirms it as cached, the time to the first token beyond wait and
prefill is the load. Unknown is NaN and gives no credit.
"""

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from routing.core.block_masks import HOST, PLANES
from routing.core.table import EndpointTable, Floats, Instance

LEAST_TOKENS = 256
"""Shorter loads drown in what else varies."""
STEP = 0.2
MAX_OPEN = 10_000
SLOW_PLANES = PLANES - HOST


class TierLoads:
    """Learned seconds per token, by instance and plane (0 host, 1 remote)."""

    def __init__(self) -> None:
        self._learned: dict[Instance, list[float]] = {}
        self._open: OrderedDict[int, tuple[int, float]] = OrderedDict()
        """Lease to plane and tokens, of prompts whose hit is in one slower memory."""

    def seconds_per_token(
        self, table: EndpointTable, planes_of: Callable[[int], dict[str, int]]
    ) -> Floats:
        """Shape `(2, n)`; `planes_of` gives a slot's media with their plane."""
        found: Floats = np.full((SLOW_PLANES, len(table)), np.nan)
        for instance in table.instances:
            planes = planes_of(instance.slot)
            if not planes:
                continue
            found[:, instance.row] = self._learned.get(instance, np.nan)
            stated = {tier.medium: tier.seconds_per_token for tier in instance.spec.tiers}
            for medium, plane in planes.items():
                seconds = stated.get(medium)
                if seconds is not None:
                    # Media that share a plane cost what the slowest of them costs.
                    known = found[plane - HOST, instance.row]
                    found[plane - HOST, instance.row] = np.fmax(known, seconds)
        return found

    def begin(self, lease: int, slower: Floats) -> None:
        """A prompt was sent where `slower` tokens (shape `(2,)`) of it are in slower memory."""
        planes = np.flatnonzero(slower >= LEAST_TOKENS)
        if len(planes) == 1 and slower.sum() == slower[planes[0]]:
            if len(self._open) >= MAX_OPEN:
                self._open.popitem(last=False)
            self._open[lease] = (int(planes[0]), float(slower[planes[0]]))

    def end(
        self, lease: int, instance: Instance, *, seconds: float | None, hit_share: float
    ) -> None:
        """It was computed; `seconds` beyond wait and prefill, `hit_share` of the hit confirmed."""
        noted = self._open.pop(lease, None)
        if noted is None or seconds is None or hit_share < 0.95:
            return
        plane, tokens = noted
        learned = self._learned.setdefault(instance, [float("nan")] * SLOW_PLANES)
        seen, known = max(0.0, seconds) / tokens, learned[plane]
        learned[plane] = seen if np.isnan(known) else known + STEP * (seen - known)

    def keep_alive_only(self) -> None:
        """Forget instances that are gone."""
        self._learned = {key: value for key, value in self._learned.items() if key.is_alive}
