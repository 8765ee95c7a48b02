"""The ring of decision records and their outcomes, without any prompt text.

Ordinary decisions are sampled by the rate of their pool or tenant; refusals, retries and decisions
whose request failed are always recorded. Both are bounded per second: a storm of refusals comes
when there is least time for it. What the bound left out is counted.

An outcome is a line of its own, with its own number: a reader who follows the numbers gets it
although it read the decision before the request ended.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from routing.core.decision import Decision
from routing.core.document import Recording
from routing.core.prompt import BlockKeys
from routing.core.record import record_of
from routing.pool.recording import Keep

KEPT = 2000
KEPT_BYTES = 32 * 1024 * 1024
DETAILED_PER_SECOND = 10.0
"""With hundreds of endpoints a record with all candidates takes milliseconds and 50 kB."""
PLAIN_PER_SECOND = 200.0
"""Refusals and failures without candidates: some 20 us each."""
MOST_KEYS = 4096
"""Block keys remembered per record, so that a test can ask for the same prefix."""


class Prefix(NamedTuple):
    """The prompt of a recorded decision, as keys."""

    keys: BlockKeys
    chunk_tokens: float


class Line(NamedTuple):
    """One record, or how the request of one ended."""

    number: int
    decision_id: str
    pool: str
    tenant: str
    kind: str
    """chosen, refused or outcome."""
    content: bytes
    """JSON that begins with the number."""


class LineRing:
    """The newest lines, up to a number and a size."""

    def __init__(self, *, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        self._lines: deque[Line] = deque(maxlen=kept)
        self._bytes = 0
        self._kept_bytes = kept_bytes
        self.last_number = 0

    def put(self, line: Line) -> None:
        """Add a line; the oldest go."""
        lines = self._lines
        self._bytes += len(line.content)
        while lines and (len(lines) == lines.maxlen or self._bytes > self._kept_bytes):
            self._bytes -= len(lines.popleft().content)
        lines.append(line)

    def adopt(self, line: Line) -> None:
        """Add a line of another ring, with the next number of this one."""
        self.last_number = number = self.last_number + 1
        head, _, rest = line.content.partition(b",")
        if head != b'{"number":%d' % line.number:
            raise ValueError("A line begins with its number.")
        content = b'{"number":%d,%b' % (number, rest)
        self.put(line._replace(number=number, content=content))

    def after(
        self, number: int, *, limit: int, pool: str = "", tenant: str = "", kind: str = ""
    ) -> list[bytes]:
        """JSON of the lines with a higher number, oldest first; "" is every one."""
        wanted = {"pool": pool, "tenant": tenant, "kind": kind}
        asked = {name: value for name, value in wanted.items() if value}
        found = (
            line.content
            for line in self._lines
            if line.number > number
            and all(getattr(line, name) == value for name, value in asked.items())
        )
        return [content for content, _ in zip(found, range(limit), strict=False)]

    def find(self, decision_id: str) -> dict[str, Any] | None:
        """One record with its outcome, while the ring holds it."""
        record: dict[str, Any] | None = None
        for line in self._lines:
            if line.decision_id != decision_id:
                continue
            content = msgspec.json.decode(line.content)
            if line.kind == "outcome":
                record = None if record is None else record | {"outcome": content["outcome"]}
            else:
                record = content
        return record


class DecisionRing(LineRing):
    """See the module."""

    def __init__(
        self,
        *,
        kept: int = KEPT,
        kept_bytes: int = KEPT_BYTES,
        per_second: float = DETAILED_PER_SECOND,
        seed: int = 0,
    ) -> None:
        super().__init__(kept=kept, kept_bytes=kept_bytes)
        self.on_line: Callable[[Line], None] | None = None
        """Told of each line."""
        self._interval = 1 / per_second
        self._next_at = {"ordinary": float("-inf"), "other": float("-inf")}
        self._plain_from, self._plain = float("-inf"), 0
        self._luck = np.random.default_rng(seed)
        self._prefixes: OrderedDict[str, Prefix | None] = OrderedDict()
        """Recorded decisions, for what follows them; as many as lines at most."""
        self._open: set[str] = set()
        """Those whose outcome has not come."""
        self.left_out = 0

    def keep(
        self,
        recording: Recording,
        *,
        tenant_rate: float | None,
        is_special: bool,
        now: float,
    ) -> Keep:
        """Whether the coming decision is to hold what a replay needs.

        `is_special` are retries and tests, which are recorded whenever the bound allows.
        """
        next_at = self._next_at
        if not is_special and now >= next_at["ordinary"]:
            rate = recording.sample_rate if tenant_rate is None else tenant_rate
            if rate >= 1 or self._luck.random() < rate:
                return "always"
        if now < next_at["other"]:
            return None
        return "always" if is_special else "refusals"

    def offer(
        self,
        decision: Decision,
        *,
        attempt: int,
        now: float,
        unix_now: float,
        document_hash: str = "",
    ) -> None:
        """Record a decision if it is to be; building a record costs more than deciding."""
        if not is_offered(decision, attempt=attempt):
            return
        is_ordinary = decision.refusal is None and attempt == 1
        has_inputs = decision.inputs is not None
        kind = "ordinary" if is_ordinary and not _is_test(decision) else "other"
        is_detailed = (has_inputs or kind == "other") and now >= self._next_at[kind]
        if is_detailed:
            self._next_at[kind] = now + self._interval
        elif not self._has_room(now):
            self.left_out += 1
            return
        head = {"attempt": attempt, "document_hash": document_hash or None}
        self._record(decision, head, with_candidates=is_detailed, unix_now=unix_now)

    def awaits(self, decision_id: str) -> bool:
        """Whether the outcome of a decision is to be recorded."""
        return decision_id in self._open

    def ended(
        self, decision: Decision, outcome: dict[str, Any], *, now: float, unix_now: float
    ) -> None:
        """Record how a request went; the decision too, if it failed and is not recorded yet."""
        if decision.id not in self._open:
            if outcome["outcome"] != "error" or decision.id in self._prefixes:
                return
            if not self._has_room(now):
                self.left_out += 1
                return
            head = {"attempt": outcome.get("attempt"), "document_hash": None}
            is_detailed = now >= self._next_at["other"]
            if is_detailed:
                self._next_at["other"] = now + self._interval
            self._record(decision, head, with_candidates=is_detailed, unix_now=unix_now)
        self._open.discard(decision.id)
        line = {"outcome_of": decision.id, "pool": decision.pool, "outcome": outcome}
        self._add("outcome", decision, line, unix_now=unix_now)

    def prefix_of(self, decision_id: str) -> Prefix | None:
        """The prompt of a recorded decision, as keys; `None` when it is not known any more."""
        return self._prefixes.get(decision_id)

    def _has_room(self, now: float) -> bool:
        if now - self._plain_from >= 1.0:
            self._plain_from, self._plain = now, 0
        self._plain += 1
        return self._plain <= PLAIN_PER_SECOND

    def _record(
        self, decision: Decision, head: dict[str, Any], *, with_candidates: bool, unix_now: float
    ) -> None:
        record = {**head, **record_of(decision, with_candidates=with_candidates)}
        parsed = None if decision.request is None else decision.request.parsed
        self._prefixes[decision.id] = (
            None if parsed is None else Prefix(_beginning(parsed.block_keys), parsed.chunk_tokens)
        )
        if decision.refusal is None:
            self._open.add(decision.id)
        while len(self._prefixes) > (self._lines.maxlen or KEPT):
            gone, _ = self._prefixes.popitem(last=False)
            self._open.discard(gone)
        self._add("refused" if decision.refusal else "chosen", decision, record, unix_now=unix_now)

    def _add(
        self, kind: str, decision: Decision, content: dict[str, Any], *, unix_now: float
    ) -> None:
        self.last_number += 1
        encoded = msgspec.json.encode(
            {"number": self.last_number, "recorded_at": unix_now, **content}
        )
        tenant = "" if decision.request is None else decision.request.tenant
        line = Line(self.last_number, decision.id, decision.pool, tenant, kind, encoded)
        self.put(line)
        if self.on_line:
            self.on_line(line)


def _beginning(keys: BlockKeys) -> BlockKeys:
    """At most `MOST_KEYS`; a view would keep all keys of a long prompt in memory."""
    return keys if len(keys) <= MOST_KEYS else keys[:MOST_KEYS].copy()


def is_offered(decision: Decision, *, attempt: int) -> bool:
    """Whether a decision may be recorded: sampled ones, refusals and retries."""
    return decision.inputs is not None or decision.refusal is not None or attempt > 1


def _is_test(decision: Decision) -> bool:
    request = decision.request
    return request is not None and bool(request.forced or request.avoided)
