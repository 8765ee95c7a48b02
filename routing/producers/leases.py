"""In-flight load: the sum of this router's open leases, per endpoint. It cannot leak.

Every amount that a lease adds sits in a `Holding`, which is taken back exactly once, whatever the
order of prefill end, first token, end, abort and death of the instance.
"""

import heapq
import math
from collections import Counter, deque
from collections.abc import Iterator

from routing.core.decision import Decision
from routing.core.lease import Holding, Lease
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Instance

KV_HOLD_SECONDS = 30.0
"""How long a prefill engine keeps blocks that nobody pulled (vLLM's `kv_lease_duration`)."""


class LeaseBook:
    """Open leases by number; `counts` never go below zero."""

    def __init__(self) -> None:
        self._open: dict[int, Lease] = {}
        self._of_tenant: Counter[str] = Counter()
        self._last = 0
        self.changes = 0
        """Grows with each step of a lease that changes what is open."""
        self._settling: list[tuple[float, int]] = []
        """When the prompts of requests that are not streamed are probably computed."""
        self._prompts: dict[Instance, dict[int, int]] = {}
        """Prompts that are not known to be computed: tokens by lease, in the order they were sent.
        """
        self._kept: deque[tuple[float, Holding]] = deque()
        """Blocks at prefill ends that were computed and never pulled, in order of time."""

    def __len__(self) -> int:
        return len(self._open)

    def open_of(self, tenant: str) -> int:
        """Open leases of one tenant."""
        return self._of_tenant[tenant]

    def answered_by(self, endpoint_id: str) -> set[str]:
        """Ids of the requests that have an open lease there; looks at all leases."""
        return {
            lease.request.id
            for lease in self._open.values()
            if lease.destination.spec.id == endpoint_id
        }

    def places(self) -> Iterator[tuple[Lease, Instance]]:
        """Open leases with each living instance that counts their request."""
        for lease in self._open.values():
            for holding in lease.holdings:
                if holding.is_held and "requests" in holding.amounts and holding.instance.is_alive:
                    yield lease, holding.instance

    def lose_sight(self, lease: Lease) -> None:
        """Nobody tells of a lease any more: its prompt is computed at the predicted time."""
        predicted = lease.decision.predicted
        if lease.is_open and lease.first_token_at is None:
            lease.is_unseen = True
            # Of one that is not streamed that time is noted already.
            if lease.request.parsed.stream and math.isfinite(predicted.ttft_seconds):
                at = lease.began_at + predicted.ttft_seconds
                heapq.heappush(self._settling, (at, lease.number))

    def begin(
        self,
        table: EndpointTable,
        request: InferenceRequest,
        decision: Decision,
        *,
        destination: Instance,
        prefill: Instance | None,
        now: float,
    ) -> Lease:
        """Open a lease and add its load to the destination and, with a pair, to the prefill end."""
        self._last += 1
        self.changes += 1
        predicted = decision.predicted
        work = max(0, predicted.uncached_tokens)
        lease = Lease(
            number=self._last,
            request=request,
            decision=decision,
            destination=destination,
            prefill=prefill,
            began_at=now,
            work_tokens=work,
            output_tokens=max(1, predicted.output_tokens),
        )
        prompt_row = lease.prompt_instance.row
        table.integrate(prompt_row, now)
        lease.at_begin = _load(table, prompt_row)
        if lease.at_begin["prefill_requests"] > 0:
            lease.at_begin["head"] = table.cells["head_tokens"][prompt_row]
            lease.at_begin["moving"] = max(now - table.cells["prompt_moved_at"][prompt_row], 0.0)
        if lease.at_begin["prefill_requests"] == 0:
            table.prompt_moved_at[prompt_row] = now
        lease.holdings = _holdings(lease)
        for holding in lease.holdings:
            holding.take(table, now=now)
        prompts = self._prompts.setdefault(lease.prompt_instance, {})
        prompts[lease.number] = work
        if len(prompts) == 1:
            table.cells["head_tokens"][prompt_row] = work
        self._open[lease.number] = lease
        if not request.parsed.stream and math.isfinite(predicted.ttft_seconds):
            heapq.heappush(self._settling, (now + predicted.ttft_seconds, lease.number))
        self._of_tenant[request.tenant] += 1
        return lease

    def settle(self, table: EndpointTable, *, now: float) -> None:
        """Take prompts for computed whose predicted time has passed, where no stream tells.

        Only the prompt's share and half of the output's are given back: the lease itself never
        ends by time. Blocks that were never pulled are given back when the engine drops them.
        """
        while self._kept and self._kept[0][0] <= now:
            self._kept.popleft()[1].release(table, now=now)
        while self._settling and self._settling[0][0] <= now:
            _, number = heapq.heappop(self._settling)
            lease = self._open.get(number)
            if lease is not None and _is_there_by_now(lease):
                self._prompt_arrived(table, lease, now=now)
                # No stream tells how much of the output is made: half of it on average.
                lease.holdings[0].reduce(table, "remaining_tokens", lease.output_tokens // 2)

    def prompt_done(self, table: EndpointTable, lease: Lease, *, now: float) -> None:
        """The prompt is computed: its prefill work is no longer ahead of anybody."""
        _, prompt, *_ = lease.holdings
        if prompt.is_held and prompt.instance.is_alive:
            row = prompt.instance.row
            table.cells["prefill_done_tokens"][row] += prompt.amounts["prefill_tokens"]
            table.prompt_moved_at[row] = now
        self.changes += 1
        prompt.release(table, now=now)
        self._leave_queue(table, lease)

    def _leave_queue(self, table: EndpointTable, lease: Lease) -> None:
        """The prompt is computed or given up: the next one is at work."""
        instance = lease.prompt_instance
        prompts = self._prompts.get(instance, {})
        if prompts.pop(lease.number, None) is None:
            return
        if instance.is_alive:
            table.cells["head_tokens"][instance.row] = next(iter(prompts.values()), 0)
        if not prompts:
            del self._prompts[instance]

    def first_token(self, table: EndpointTable, lease: Lease, *, now: float) -> None:
        """The destination has the KV: a prefill end holds nothing for it any more."""
        self._prompt_arrived(table, lease, now=now)
        lease.first_token_at = now
        self.start_stretch(table, lease, now=now)

    def start_stretch(self, table: EndpointTable, lease: Lease, *, now: float) -> None:
        """From here on output is counted for the next look at the speed."""
        row = lease.destination.row
        if row >= 0:
            table.integrate(row, now)
            lease.at_first_token = _integrals(table, row)
            lease.stretch_at, lease.stretch_tokens = now, 0

    def _prompt_arrived(self, table: EndpointTable, lease: Lease, *, now: float) -> None:
        self.prompt_done(table, lease, now=now)
        sequence = lease.holdings[0]
        if sequence.instance.is_alive:
            table.integrate(sequence.instance.row, now)
        sequence.reduce(table, "unstarted", 1)
        for holding in lease.holdings[2:]:
            holding.release(table, now=now)

    def tokens(self, table: EndpointTable, lease: Lease, count: int) -> None:
        """Count output; what is still expected shrinks by it."""
        lease.stretch_tokens += count
        lease.output_seen += count
        lease.holdings[0].reduce(table, "remaining_tokens", count)

    def outlive(self, table: EndpointTable, lease: Lease, *, expected: int, now: float) -> None:
        """The output is longer than was expected: from here on `expected` tokens in all."""
        more = expected - lease.output_tokens
        lease.outlived += 1
        if more <= 0:
            return
        lease.output_tokens = expected
        sequence = lease.holdings[0]
        if sequence.instance.is_alive:
            table.integrate(sequence.instance.row, now)
        sequence.extend(table, "remaining_tokens", more)
        sequence.extend(table, "private_tokens", more)
        sequence.extend(table, "context_tokens", more // 2)

    def end(self, table: EndpointTable, lease: Lease, *, now: float, is_answered: bool) -> bool:
        """Close a lease; False when it was closed before."""
        if self._open.pop(lease.number, None) is None:
            return False
        self.changes += 1
        lease.is_open = False
        arrived = is_answered or lease.first_token_at is not None
        if lease.prefill_done_at is not None and not arrived:
            # The decode end never came for it, so the prefill end keeps the blocks for a while.
            kept = lease.holdings[2:]
            self._kept.extend((now + KV_HOLD_SECONDS, holding) for holding in kept)
            lease.holdings = lease.holdings[:2]
        for holding in lease.holdings:
            holding.release(table, now=now)
        self._leave_queue(table, lease)
        tenant = lease.request.tenant
        self._of_tenant[tenant] -= 1
        if self._of_tenant[tenant] <= 0:
            del self._of_tenant[tenant]
        return True

    def forget_dead(self, table: EndpointTable, *, now: float) -> int:
        """Close the leases whose destination is gone; returns how many those were."""
        dead = [lease for lease in self._open.values() if not lease.destination.is_alive]
        for lease in dead:
            self.end(table, lease, now=now, is_answered=False)
        return len(dead)


def _is_there_by_now(lease: Lease) -> bool:
    """Whether the destination can have begun, as far as anybody could have told otherwise."""
    return lease.prefill is None or lease.prefill_done_at is not None or lease.is_unseen


def _holdings(lease: Lease) -> tuple[Holding, ...]:
    """Sequence at the destination, prompt work where it is computed, blocks kept for a pull."""
    predicted = lease.decision.predicted
    prompt = lease.request.parsed.prompt_tokens
    fresh = max(0, prompt - predicted.destination_hit_tokens)
    sequence = Holding(
        lease.destination,
        {
            "requests": 1,
            "sequences": 1,
            "unstarted": 1,
            "context_tokens": prompt + lease.output_tokens // 2,
            "remaining_tokens": lease.output_tokens,
            "private_tokens": fresh + lease.output_tokens,
        },
    )
    work = {"prefill_requests": 1, "prefill_tokens": lease.work_tokens}
    if lease.prefill is None:
        return sequence, Holding(lease.destination, work)
    return (
        sequence,
        Holding(lease.prefill, work | {"requests": 1}),
        Holding(lease.prefill, {"private_tokens": lease.work_tokens}),
    )


def _load(table: EndpointTable, row: int) -> dict[str, float]:
    cells = table.cells
    return {
        "prefill_tokens": cells["prefill_tokens"][row],
        "prefill_requests": cells["prefill_requests"][row],
        "sequences": cells["sequences"][row],
        "context_tokens": cells["context_tokens"][row],
        "others": cells["others"][row],
        **_integrals(table, row),
    }


def _integrals(table: EndpointTable, row: int) -> dict[str, float]:
    cells = table.cells
    return {
        "sequence": cells["sequence_integral"][row],
        "context": cells["context_integral"][row],
        "prefill_done": cells["prefill_done_tokens"][row],
    }
