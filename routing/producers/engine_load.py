"""What engines report, put into the table; other people's traffic is added, never forced to zero.

`others` is what an engine runs and queues beyond this router's open leases. A request that just
left or has not arrived yet makes the difference jitter, so the smaller of the last two readings
counts.
"""

import math

from routing.core.signals import EngineSignals
from routing.core.table import EndpointTable, Instance

STALE_SECONDS = 5.0
"""Readings older than this are unknown: scraping happens every 0.2 to 0.5 s."""

MOST_USAGE = 2.0


class EngineLoad:
    """Keeps the last differences and process starts per instance."""

    def __init__(self) -> None:
        self._differences: dict[Instance, tuple[float, float]] = {}
        self._started: dict[Instance, float] = {}
        self._totals: dict[Instance, float] = {}

    def observe(
        self, table: EndpointTable, instance: Instance, signals: EngineSignals, *, now: float
    ) -> bool:
        """Fill the columns; True when the engine has restarted since the last reading."""
        row = instance.row
        table.observed_at[row] = now
        table.running[row] = _number(signals.running)
        table.waiting[row] = _number(signals.waiting)
        table.kv_usage[row] = _share(signals.kv_usage)
        if signals.kv_capacity_tokens is not None:
            table.report_capacity(row, signals.kv_capacity_tokens)
        if signals.block_size_tokens is not None:
            table.report_block_size(row, signals.block_size_tokens)
        if signals.adapters is not None:
            instance.adapters = signals.adapters.after(instance.adapters)
        self._observe_others(table, instance, signals)
        table.others_tokens[row] = _number(signals.waiting_tokens)
        if signals.waiting_tokens is not None:
            ours = float(table.prefill_tokens[row])
            table.others_tokens[row] = max(0.0, signals.waiting_tokens - ours)
        return self._has_restarted(instance, signals)

    def _has_restarted(self, instance: Instance, signals: EngineSignals) -> bool:
        """Another start, or, where an engine does not tell it, a counter that went back."""
        if signals.process_start is not None:
            known = self._started.get(instance)
            self._started[instance] = signals.process_start
            return known is not None and signals.process_start != known
        total = signals.prompt_tokens_total
        if total is None:
            return False
        before = self._totals.get(instance, 0.0)
        self._totals[instance] = total
        return total < before

    def _observe_others(
        self, table: EndpointTable, instance: Instance, signals: EngineSignals
    ) -> None:
        if signals.running is None and signals.waiting is None:
            return
        row, waiting = instance.row, signals.waiting or 0
        total = float((signals.running or 0) + waiting - int(table.requests[row]))
        difference = max(0.0, total)
        _, before = self._differences.get(instance, (0.0, 0.0))
        self._differences[instance] = (before, difference)
        table.others[row] = min(before, difference)
        table.others_waiting[row] = min(float(waiting), float(table.others[row]))

    def expire(self, table: EndpointTable, *, now: float) -> None:
        """Turn readings that are too old into unknown."""
        old = table.observed_at < now - STALE_SECONDS
        if old.any():
            table.running[old] = math.nan
            table.waiting[old] = math.nan
            table.kv_usage[old] = math.nan
            table.others[old] = 0.0
            table.others_waiting[old] = 0.0
            table.others_tokens[old] = math.nan

    def keep_alive_only(self) -> None:
        """Forget instances that are gone."""
        self._differences = {key: value for key, value in self._differences.items() if key.is_alive}
        self._started = {key: value for key, value in self._started.items() if key.is_alive}
        self._totals = {key: value for key, value in self._totals.items() if key.is_alive}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _share(value: float | None) -> float:
    """From 0 to 1; an engine may count a little more than there is, anything else is no share."""
    if value is None or not 0.0 <= value <= MOST_USAGE:
        return math.nan
    return min(float(value), 1.0)
