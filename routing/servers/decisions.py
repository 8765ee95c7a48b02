"""The ring of sampled decision records, without any prompt text."""

from collections import deque
from typing import Any

from routing.core.decision import Decision

KEPT = 2000
ORDINARY_PER_SECOND = 10.0


class DecisionRing:
    """Keeps every refusal and retry, and a bounded rate of ordinary decisions, newest last."""

    def __init__(self, *, kept: int = KEPT, per_second: float = ORDINARY_PER_SECOND) -> None:
        self._records: deque[dict[str, Any]] = deque(maxlen=kept)
        self._interval = 1 / per_second
        self._next_at = float("-inf")
        self.last_number = 0

    def offer(self, decision: Decision, *, attempt: int, now: float, unix_now: float) -> None:
        """Record a decision if it is due; building a record costs more than deciding."""
        is_ordinary = decision.refusal is None and attempt == 1
        if is_ordinary and now < self._next_at:
            return
        if is_ordinary:
            self._next_at = now + self._interval
        self.last_number += 1
        self._records.append(
            {
                "number": self.last_number,
                "recorded_at": unix_now,
                "attempt": attempt,
                **decision.record(),
            }
        )

    def after(self, number: int, *, limit: int) -> list[dict[str, Any]]:
        """Records with a higher number, oldest first."""
        return [record for record in self._records if record["number"] > number][:limit]
