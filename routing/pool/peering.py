"""What a pool's router tells the other processes and routers of its pool, and hears of them.

Told are: the sums of open leases per endpoint, prompts that were begun (so that siblings of a burst
that arrive elsewhere stay together), breakers that opened or closed. A change is told with the next
`tell`, which a driver calls every few milliseconds; everything that is open is told again every
`ROUND_SECONDS`, also that it became nothing, so that a lost packet costs freshness only.

Pure: a driver moves the packets. Until `join` nothing is kept and nothing is told.
"""

from collections.abc import Iterator

import numpy as np

from routing.core.peer_messages import (
    Begun,
    BreakerNews,
    Loads,
    Packet,
    TenantUse,
    name_of,
    pack_loads,
    unpack_keys,
    unpack_loads,
)
from routing.core.table import EndpointTable, Floats, Instance
from routing.pool.knowledge import Knowledge
from routing.producers.breakers import CLOSED, KINDS
from routing.producers.tenants import Use

ROUND_SECONDS = 0.2
REPEAT_ZERO_SECONDS = 1.5
"""How long it is said again that an endpoint has nothing open."""
URGENT_COLUMNS = 4
"""The first columns of `LOADS` change with a lease's steps, the others also with each token."""
ROWS_PER_PACKET = 30
"""A packet stays below 1,300 bytes, which no network splits."""
USES_PER_PACKET = 22
"""A use of a limit takes up to 45 bytes."""
UNUSED = Use(open=0, requests=0, tokens=0)

BUNDLE_BYTES = 1100
PART_BYTES = 24
"""Of a part of a prompt without its keys."""


class Peering:
    """One per pool's router, see the module."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._node = ""
        self._epoch = self._number = 0
        self._names: list[int] = []
        self._table: EndpointTable | None = None
        self._told: Floats = np.zeros((0, 0))
        self._busy_at: Floats = np.zeros(0)
        self._round_at = 0.0
        self._told_changes = 0
        self._told_use: dict[str, Use] = {}
        self._use_until: dict[str, float] = {}
        """Until when the use of a limit is told again, so that a lost packet does not matter."""
        self._use_round_at = 0.0

    @property
    def is_joined(self) -> bool:
        """Somebody moves the packets."""
        return bool(self._node)

    @property
    def is_dirty(self) -> bool:
        """Something was heard since the last `settle`."""
        return self._known.peers.is_dirty

    @property
    def is_busy(self) -> bool:
        """Requests are open here, so that something is to be told soon."""
        return len(self._known.leases) > 0

    @property
    def nodes(self) -> list[str]:
        """Nodes whose leases count here."""
        return self._known.peers.nodes

    def join(self, *, node: str, epoch: int) -> None:
        """From here on this router is `node`; `epoch` is higher than in any earlier life of it."""
        self._node, self._epoch = node, epoch
        self._known.news.is_wanted = True

    # Telling.

    def tell(self, *, now: float) -> list[Packet]:
        """What the others do not know yet; mostly nothing."""
        loads = list(self._loads(now))
        prompts = _bundles(self._known.news.take_prompts(now=now))
        packets = []
        if len(loads) == 1 and len(prompts) == 1 and _size(loads[0], prompts[0]) < BUNDLE_BYTES:
            # The ordinary case: a request or two began.
            packets.append(self._packet(loads=loads.pop(), begun=prompts.pop()))
        packets += [self._packet(loads=part) for part in loads]
        packets += [self._packet(begun=bundle) for bundle in prompts]
        news = self._known.news.take_breakers()
        packets += [
            self._packet(breakers=news[start : start + ROWS_PER_PACKET])
            for start in range(0, len(news), ROWS_PER_PACKET)
        ]
        packets += [self._packet(tenants=part) for part in self._uses(now)]
        return packets

    def farewell(self) -> Packet:
        """This node ends; all its leases are over."""
        return self._packet(is_last=True)

    def _packet(
        self,
        *,
        loads: Loads | None = None,
        begun: tuple[Begun, ...] = (),
        breakers: tuple[BreakerNews, ...] = (),
        tenants: tuple[TenantUse, ...] = (),
        is_last: bool = False,
    ) -> Packet:
        self._number += 1
        return Packet(
            node=self._node,
            epoch=self._epoch,
            number=self._number,
            pool=self._known.document.pool,
            loads=loads,
            begun=begun,
            breakers=breakers,
            tenants=tenants,
            is_last=is_last,
        )

    def _loads(self, now: float) -> Iterator[Loads]:
        known = self._known
        self._follow_table()
        is_round = now >= self._round_at
        changes = known.leases.changes
        if changes == self._told_changes and not is_round:
            return
        self._told_changes = changes
        own = known.peers.own(known.table)
        if is_round:
            self._round_at = now + ROUND_SECONDS
            self._busy_at[own.any(axis=0)] = now
            wanted = now - self._busy_at <= REPEAT_ZERO_SECONDS
        else:
            urgent = slice(0, URGENT_COLUMNS)
            wanted = (own[urgent] != self._told[urgent]).any(axis=0)
            if not wanted.any():
                return
            self._busy_at[wanted] = now
        self._told = own
        rows = np.flatnonzero(wanted)
        if is_round and not len(rows):
            # Says that this node is alive.
            yield pack_loads([], own[:, :0])
        for start in range(0, len(rows), ROWS_PER_PACKET):
            part = rows[start : start + ROWS_PER_PACKET]
            yield pack_loads([self._names[row] for row in part.tolist()], own[:, part])

    def _uses(self, now: float) -> Iterator[tuple[TenantUse, ...]]:
        """Once a round, what is used of limits: what is open, and what changed lately."""
        limits = self._known.tenants
        if not limits.is_limiting or now < self._use_round_at:
            return
        self._use_round_at = now + ROUND_SECONDS
        uses = limits.own_use()
        for name, use in uses.items():
            if use.open or use != self._told_use.get(name, UNUSED):
                self._use_until[name] = now + REPEAT_ZERO_SECONDS
        self._told_use = uses
        self._use_until = {
            name: until for name, until in self._use_until.items() if until > now and name in uses
        }
        told = [
            TenantUse(name, use.open, use.requests, use.tokens)
            for name in self._use_until
            for use in (uses[name],)
        ]
        for start in range(0, len(told), USES_PER_PACKET):
            yield tuple(told[start : start + USES_PER_PACKET])

    def _follow_table(self) -> None:
        table = self._known.table
        if table is not self._table:
            self._table = table
            self._names = [name_of(instance) for instance in table.instances]
            self._told = np.zeros((len(self._known.peers.own(table)), len(table)))
            self._busy_at = np.full(len(table), -np.inf)
            self._round_at = 0.0

    # Hearing.

    def hear(self, packet: Packet, *, now: float) -> None:
        """Take what another node said. Raises ValueError when it makes no sense."""
        known = self._known
        if packet.node == self._node:
            return
        if packet.is_last:
            known.peers.leave(packet.node, epoch=packet.epoch)
            return
        if not known.peers.hear(packet.node, epoch=packet.epoch, now=now):
            return
        if packet.loads is not None:
            names, values = unpack_loads(packet.loads)
            known.peers.take(packet.node, number=packet.number, names=names, values=values, now=now)
        for part in packet.begun:
            self._hear_prompt(packet.node, part, now=now)
        for news in packet.breakers:
            self._hear_breaker(news, now=now)
        for told in packet.tenants:
            use = Use(open=told.open, requests=told.requests, tokens=told.tokens)
            life = packet.epoch, packet.number
            known.tenants.hear(packet.node, life, told.tenant, use, now=now)

    def settle(self, *, now: float) -> None:
        """Let the table show what was heard, and what has not been heard for too long fade."""
        self._known.peers.settle(self._known.table, now=now)
        self._known.tenants.keep_nodes(self._known.peers.nodes)

    def _hear_prompt(self, node: str, part: Begun, *, now: float) -> None:
        instance = self._instance(part.endpoint)
        if instance is None:
            return
        keys = unpack_keys(part.keys)
        # Leases of this router have numbers above 0.
        hope = -1 - (hash((node, part.lease)) & 0xFFFF_FFFF_FFFF)
        if part.is_withdrawn:
            self._known.index.withdraw(instance.slot, keys, lease=hope)
        else:
            self._known.caches.hear_hope(instance, keys, lease=hope, now=now)

    def _hear_breaker(self, news: BreakerNews, *, now: float) -> None:
        instance, known = self._instance(news.endpoint), self._known
        if instance is None or news.kind not in KINDS:
            return
        if news.seconds is None:
            known.breakers.succeed(instance)
            known.table.open_until[instance.row] = CLOSED
        else:
            until = known.breakers.follow(instance, news.kind, until=now + news.seconds)
            known.table.open_until[instance.row] = until

    def _instance(self, name: int) -> Instance | None:
        row = self._known.peers.row(name)
        return None if row is None else self._known.table.instances[row]


def _bundles(parts: list[Begun]) -> list[tuple[Begun, ...]]:
    """Parts of prompts that fit into one packet together, in order."""
    bundles: list[tuple[Begun, ...]] = []
    bundle: list[Begun] = []
    size = 0
    for part in parts:
        if bundle and size + len(part.keys) + PART_BYTES > BUNDLE_BYTES:
            bundles.append(tuple(bundle))
            bundle, size = [], 0
        bundle.append(part)
        size += len(part.keys) + PART_BYTES
    if bundle:
        bundles.append(tuple(bundle))
    return bundles


def _size(loads: Loads, bundle: tuple[Begun, ...]) -> int:
    prompts = sum(len(part.keys) + PART_BYTES for part in bundle)
    return len(loads.names) + len(loads.values) + prompts
