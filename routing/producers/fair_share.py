"""Who is next among requests that wait in one band: fair shares of tokens, then the earliest
deadline.

The fairness is that of deficit round robin weighted by tokens, kept as virtual start times
(start-time fair queueing, Goyal et al. 1996): a tenant's clock advances by tokens / share with each
request it gets through, and the tenant whose clock is furthest behind is next. While tenants have a
backlog, their tokens relate as their shares, off by at most one request each. A tenant that was
away starts at the clock of the band, so nobody saves up; one that sends its requests one by one
keeps its clock, so nobody gains by never having a backlog.

Inside a tenant its flows (`InferenceRequest.fairness`) take turns by the same rule with equal
shares, and inside a flow the earliest deadline is first. Requests that no endpoint can take at
present (their `gate` is closed) are passed over, and their tenant does not save up meanwhile.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from routing.core.request import InferenceRequest

TicketState = Literal["waiting", "released", "refused", "expired", "cancelled", "displaced"]

_REMEMBERED: Final = 4096
"""Tenants without a backlog whose clocks are kept."""
_STALE: Final = 32
"""Entries of requests that left a line before their turn; more than so many more than those that
wait are swept out."""


@dataclass(slots=True, eq=False, kw_only=True)
class Ticket:
    """One waiting request. It leaves `waiting` exactly once."""

    request: InferenceRequest
    gate: Hashable
    """Equal for requests that may use the same endpoints."""
    tokens: int
    """Prompt and expected output."""
    body_bytes: int
    offered_at: float
    deadline: float
    """When its first token is due, or its wait is over."""
    expires_at: float
    number: int
    state: TicketState = "waiting"


_Entry = tuple[float, int, Ticket]


class _Line:
    """The requests of one tenant in a band.

    A lane holds one flow's requests of one gate by deadline. `_order` holds the heads of all lanes
    of a gate by (turn of their flow, deadline); entries that are no longer true are dropped when
    they come up, and a head whose flow had its turn is entered again.
    """

    __slots__ = (
        "_floor", "_flows", "_lanes", "_order", "_stale", "clock", "gates", "turns", "waiting",
    )  # fmt: skip

    def __init__(self, clock: float) -> None:
        self.clock = clock
        self.waiting = 0
        self.gates: Counter[Hashable] = Counter()
        """How many wait at each."""
        self.turns: dict[str | None, float] = {}
        """Tokens that each flow got through, from where it began."""
        self._flows: Counter[str | None] = Counter()
        self._floor = 0.0
        self._lanes: dict[tuple[str | None, Hashable], list[_Entry]] = {}
        self._order: dict[Hashable, list[tuple[float, float, int, Ticket]]] = {}
        self._stale = 0

    def add(self, ticket: Ticket) -> None:
        flow, gate = ticket.request.fairness, ticket.gate
        self.turns.setdefault(flow, self._floor)
        self._flows[flow] += 1
        self.gates[gate] += 1
        self.waiting += 1
        lane = self._lanes.setdefault((flow, gate), [])
        heapq.heappush(lane, (ticket.deadline, ticket.number, ticket))
        if lane[0][2] is ticket:
            self._enter(ticket)

    def _enter(self, ticket: Ticket) -> None:
        turn = self.turns[ticket.request.fairness]
        order = self._order.setdefault(ticket.gate, [])
        heapq.heappush(order, (turn, ticket.deadline, ticket.number, ticket))

    def waits_at(self, gates: set[Hashable]) -> bool:
        """Whether a request waits at one of these gates: as many looks as the shorter has."""
        return not self.gates.keys().isdisjoint(gates)

    def head(self, gates: set[Hashable]) -> Ticket | None:
        """The next request that waits at one of these gates."""
        best: tuple[float, float, int, Ticket] | None = None
        for gate in [gate for gate in self._order if gate in gates]:
            order = self._order[gate]
            while order and not (self._is_true(order[0]) and order[0][3].gate == gate):
                heapq.heappop(order)
            if not order:
                del self._order[gate]
            elif best is None or order[0] < best:
                best = order[0]
        return None if best is None else best[3]

    def _is_true(self, entry: tuple[float, float, int, Ticket]) -> bool:
        turn, _, _, ticket = entry
        flow = ticket.request.fairness
        if ticket.state != "waiting" or turn != self.turns[flow]:
            return False
        return self._lanes[(flow, ticket.gate)][0][2] is ticket

    def had_turn(self, ticket: Ticket) -> None:
        """A request got through; call it before `left`."""
        flow = ticket.request.fairness
        self._floor = max(self._floor, self.turns[flow])
        self.turns[flow] += ticket.tokens
        for gate in list(self._order):
            lane = self._lanes.get((flow, gate))
            if lane and lane[0][2] is not ticket:
                self._enter(lane[0][2])

    def move(self, ticket: Ticket, gate: Hashable) -> None:
        """A request waits at another gate from now on."""
        flow = ticket.request.fairness
        lane = self._lanes[(flow, ticket.gate)]
        if lane[0][2] is ticket:
            heapq.heappop(lane)
            self._next_of((flow, ticket.gate), lane)
        else:
            lane.remove((ticket.deadline, ticket.number, ticket))
            heapq.heapify(lane)
        _take(self.gates, ticket.gate)
        self.gates[gate] += 1
        ticket.gate = gate
        lane = self._lanes.setdefault((flow, gate), [])
        heapq.heappush(lane, (ticket.deadline, ticket.number, ticket))
        if lane[0][2] is ticket:
            self._enter(ticket)

    def left(self, ticket: Ticket) -> None:
        """A request of this line does not wait any more."""
        flow, gate = ticket.request.fairness, ticket.gate
        self.waiting -= 1
        self._flows[flow] -= 1
        self._stale += 1
        _take(self.gates, gate)
        lane = self._lanes[(flow, gate)]
        if lane[0][2] is ticket:
            self._next_of((flow, gate), lane)
        if not self._flows[flow]:
            del self._flows[flow], self.turns[flow]
        if self._stale > self.waiting + _STALE:
            self._sweep()

    def _next_of(self, key: tuple[str | None, Hashable], lane: list[_Entry]) -> None:
        while lane and lane[0][2].state != "waiting":
            heapq.heappop(lane)
        if lane:
            self._enter(lane[0][2])
        else:
            del self._lanes[key]

    def regate(self) -> None:
        """The gates of this line's tickets have changed: build lanes and order anew."""
        self.gates = Counter()
        entries = [entry for lane in self._lanes.values() for entry in lane]
        self._lanes = {}
        # In this order each lane is a heap.
        for entry in sorted(entries):
            ticket = entry[2]
            if ticket.state == "waiting":
                self.gates[ticket.gate] += 1
                self._lanes.setdefault((ticket.request.fairness, ticket.gate), []).append(entry)
        self._sweep()

    def _sweep(self) -> None:
        """Drop entries of requests that left before their turn came."""
        self._stale = 0
        self._order = {}
        for key, lane in list(self._lanes.items()):
            kept = [entry for entry in lane if entry[2].state == "waiting"]
            heapq.heapify(kept)
            self._lanes[key] = kept
            self._enter(kept[0][2])


class FairShare:
    """One band. The caller changes a ticket's state and then calls `served` or `left`, once."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._clock = 0.0
        """That of the tenant who was served last, at the start of its turn."""
        self._passed: list[_Line] = []
        """Who was before the last head, with closed gates only."""
        self._finished: dict[str, float] = {}
        """Clocks of tenants without a backlog that are ahead of the band's."""
        self._tickets: dict[int, Ticket] = {}
        self._at_gate: Counter[Hashable] = Counter()
        self.tokens = 0
        """Of all requests that wait."""

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets.values())

    def add(self, ticket: Ticket) -> None:
        """Let a request wait."""
        tenant = ticket.request.tenant
        line = self._lines.get(tenant)
        if line is None:
            clock = max(self._clock, self._finished.pop(tenant, self._clock))
            line = self._lines[tenant] = _Line(clock)
        line.add(ticket)
        self._tickets[ticket.number] = ticket
        self._at_gate[ticket.gate] += 1
        self.tokens += ticket.tokens

    def head(self, closed: Container[Hashable]) -> Ticket | None:
        """Whose turn it is, among requests whose gate is not closed; `None` if nobody's."""
        gates = {gate for gate in self._at_gate if gate not in closed}
        first = None
        shut = []
        for line in self._lines.values() if gates else ():
            if first is not None and line.clock >= first.clock:
                continue
            if line.waits_at(gates):
                first = line
            else:
                shut.append(line)
        self._passed = shut
        return None if first is None else first.head(gates)

    def regate(self, gate_of: Callable[[Ticket], Hashable]) -> None:
        """Every request waits at the gate that `gate_of` says from now on; turns stay."""
        self._at_gate = Counter()
        for ticket in self._tickets.values():
            ticket.gate = gate_of(ticket)
            self._at_gate[ticket.gate] += 1
        for line in self._lines.values():
            line.regate()

    def move(self, ticket: Ticket, gate: Hashable) -> None:
        """A request waits at another gate from now on; its turn stays."""
        _take(self._at_gate, ticket.gate)
        self._lines[ticket.request.tenant].move(ticket, gate)
        self._at_gate[gate] += 1

    def find(self, number: int) -> Ticket | None:
        """The ticket of a number, while it waits."""
        return self._tickets.get(number)

    def latest_first(self) -> Iterator[Ticket]:
        """Who waits, newest first."""
        return reversed(self._tickets.values())

    def waits_at(self, gate: Hashable) -> bool:
        """Whether a request that may use the same endpoints waits."""
        return gate in self._at_gate

    def served(self, ticket: Ticket, *, share: float) -> None:
        """A request got through: its tenant's clock advances by its tokens over its share."""
        tenant = ticket.request.tenant
        line = self._lines[tenant]
        self._clock = line.clock
        line.had_turn(ticket)
        for other in self._passed:
            # Whoever had to be passed over does not save up its turns.
            other.clock = max(other.clock, self._clock)
        line.clock += ticket.tokens / share
        self.left(ticket)

    def left(self, ticket: Ticket) -> None:
        """A request waits no more, without having got through."""
        del self._tickets[ticket.number]
        self.tokens -= ticket.tokens
        _take(self._at_gate, ticket.gate)
        tenant = ticket.request.tenant
        line = self._lines[tenant]
        line.left(ticket)
        if not line.waiting:
            del self._lines[tenant]
            self._remember(tenant, line.clock)

    def settle(self, tenant: str, tokens: int, *, share: float) -> None:
        """A request of a tenant used so many tokens more (less, below 0) than was counted."""
        line = self._lines.get(tenant)
        if line is not None:
            line.clock += tokens / share
        elif tenant in self._finished:
            self._remember(tenant, self._finished[tenant] + tokens / share)

    def _remember(self, tenant: str, clock: float) -> None:
        self._finished.pop(tenant, None)
        if clock <= self._clock:
            return
        self._finished[tenant] = clock
        if len(self._finished) > _REMEMBERED:
            ahead = {name: at for name, at in self._finished.items() if at > self._clock}
            while len(ahead) > _REMEMBERED:
                del ahead[next(iter(ahead))]
            self._finished = ahead


def _take(gates: Counter[Hashable], gate: Hashable) -> None:
    """One waits less at a gate; a gate of nobody is forgotten."""
    gates[gate] -= 1
    if not gates[gate]:
        del gates[gate]
