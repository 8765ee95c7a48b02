"""The ring of sampled decision records, without any prompt text."""

from collections import deque

import msgspec

from routing.core.decision import Decision

KEPT = 2000
KEPT_BYTES = 32 * 1024 * 1024
DETAILED_PER_SECOND = 10.0
"""With hundreds of endpoints a record with all candidates takes milliseconds and 100 kB."""


class DecisionRing:
    """Keeps every refusal and retry, and a bounded rate of ordinary decisions, newest last.

    Candidates are in a bounded rate of the former, too: a storm of refusals comes when there is
    least time for it.
    """

    def __init__(
        self,
        *,
        kept: int = KEPT,
        kept_bytes: int = KEPT_BYTES,
        per_second: float = DETAILED_PER_SECOND,
    ) -> None:
        self._records: deque[tuple[int, bytes]] = deque(maxlen=kept)
        self._bytes = 0
        self._kept_bytes = kept_bytes
        self._interval = 1 / per_second
        self._next_at = {"ordinary": float("-inf"), "other": float("-inf")}
        self.last_number = 0

    def offer(self, decision: Decision, *, attempt: int, now: float, unix_now: float) -> None:
        """Record a decision if it is due; building a record costs more than deciding."""
        kind = "ordinary" if decision.refusal is None and attempt == 1 else "other"
        is_due = now >= self._next_at[kind]
        if is_due:
            self._next_at[kind] = now + self._interval
        elif kind == "ordinary":
            return
        self.last_number += 1
        record = {
            "number": self.last_number,
            "recorded_at": unix_now,
            "attempt": attempt,
            **decision.record(with_candidates=is_due),
        }
        self._add(msgspec.json.encode(record))

    def _add(self, record: bytes) -> None:
        records = self._records
        self._bytes += len(record)
        while records and (len(records) == records.maxlen or self._bytes > self._kept_bytes):
            self._bytes -= len(records.popleft()[1])
        records.append((self.last_number, record))

    def after(self, number: int, *, limit: int) -> list[bytes]:
        """JSON of the records with a higher number, oldest first."""
        return [record for own, record in self._records if own > number][:limit]
