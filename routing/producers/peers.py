"""Load that our other processes and routers have sent, added to the table like our own.

Each node tells the sums of its open leases per endpoint, as absolute figures, so a lost, repeated
or overtaken packet does no harm: the newest figure counts, and figures are told again before they
are old. What is not told again fades: after `FRESH_SECONDS` it counts less and less and at
`GONE_SECONDS` nothing, so a silent node leaves nothing behind.

The columns of the table hold the sum of our leases and of theirs, so a price, an engine's
difference to its own counters and a learned concurrency see one fleet. `own` takes it apart again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routing.core.peer_messages import LOADS, name_of
from routing.core.table import EndpointTable, Floats, Instance

FRESH_SECONDS = 1.0
GONE_SECONDS = 3.0
MAX_NODES = 256
FORGET_SECONDS = 60.0
"""A silent node is remembered for so long, to recognise late packets of an earlier life."""


@dataclass(slots=True, eq=False)
class _Node:
    """What one node said, per row of the table."""

    epoch: int
    heard_at: float
    values: Floats
    """Shape `(columns, n)`."""
    numbers: NDArray[np.int64]
    told_at: Floats
    is_gone: bool = False


class PeerLoads:
    """Sums over all nodes; `settle` brings the table up to date."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._instances: tuple[Instance, ...] = ()
        self._rows: dict[int, int] = {}
        self._sums: Floats = np.zeros((len(LOADS), 0))
        self._is_dirty = False

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes whose figures count at present."""
        return [name for name, node in self._nodes.items() if not node.is_gone]

    def silence(self, *, now: float) -> float | None:
        """Seconds since the node that was silent longest was heard; `None` when there is none."""
        if not self._nodes:
            return None
        silent = [now - node.heard_at for node in self._nodes.values() if not node.is_gone]
        return max(silent, default=None)

    def follow(self, table: EndpointTable) -> None:
        """The table was replaced; what was added to rows that are still there has come along."""
        old = {instance: row for row, instance in enumerate(self._instances)}
        pairs = [
            (row, old[instance]) for row, instance in enumerate(table.instances) if instance in old
        ]
        self._instances = table.instances
        self._rows = {name_of(instance): row for row, instance in enumerate(table.instances)}
        here, there = [row for row, _ in pairs], [row for _, row in pairs]
        self._sums = _moved(self._sums, len(table), here, there)
        for node in self._nodes.values():
            node.values = _moved(node.values, len(table), here, there)
            numbers, told_at = node.numbers, node.told_at
            node.numbers = np.zeros(len(table), dtype=np.int64)
            node.told_at = np.full(len(table), -np.inf)
            node.numbers[here], node.told_at[here] = numbers[there], told_at[there]
        self._is_dirty = True

    def row(self, name: int) -> int | None:
        """Row of an endpoint by its 64-bit name."""
        return self._rows.get(name)

    def hear(self, name: str, *, epoch: int, now: float) -> bool:
        """A packet of a node came; False when it is of an earlier life or one node too many."""
        node = self._nodes.get(name)
        if node is None:
            if len(self._nodes) >= MAX_NODES:
                return False
            self._nodes[name] = self._empty(epoch, now)
            return True
        if epoch < node.epoch or (epoch == node.epoch and node.is_gone):
            return False
        if epoch > node.epoch:
            # Its earlier life ended, and the leases of that life with it.
            self._nodes[name] = self._empty(epoch, now)
            self._is_dirty = True
        self._nodes[name].heard_at = now
        return True

    def _empty(self, epoch: int, now: float) -> _Node:
        count = len(self._instances)
        return _Node(
            epoch=epoch,
            heard_at=now,
            values=np.zeros((len(LOADS), count)),
            numbers=np.zeros(count, dtype=np.int64),
            told_at=np.full(count, -np.inf),
        )

    def take(self, name: str, *, number: int, names: list[int], values: Floats, now: float) -> None:
        """Take figures of a node that was heard; endpoints that are not known here are left out."""
        node = self._nodes[name]
        found = [self._rows.get(endpoint, -1) for endpoint in names]
        rows = np.array(found, dtype=np.intp)
        keep = rows >= 0
        rows, values = rows[keep], values[:, keep]
        newer = node.numbers[rows] < number
        rows, values = rows[newer], values[:, newer]
        node.values[:, rows] = values
        node.numbers[rows] = number
        node.told_at[rows] = now
        self._is_dirty = True

    def leave(self, name: str, *, epoch: int) -> None:
        """A node ended: its leases are over."""
        node = self._nodes.get(name)
        if node is not None and epoch >= node.epoch:
            node.epoch = epoch
            node.is_gone = True
            node.values[:] = 0.0
            self._is_dirty = True

    def settle(self, table: EndpointTable, *, now: float) -> None:
        """Bring the columns of the table to what the nodes say at this time."""
        sums = np.zeros_like(self._sums)
        for name, node in list(self._nodes.items()):
            if now - node.heard_at > FORGET_SECONDS:
                del self._nodes[name]
                continue
            age = now - node.told_at
            share = (GONE_SECONDS - age) / (GONE_SECONDS - FRESH_SECONDS)
            # Whole numbers add and subtract without a rest.
            sums += np.floor(node.values * np.clip(share, 0.0, 1.0))
        self._is_dirty = False
        change = sums - self._sums
        rows = np.flatnonzero(change.any(axis=0))
        for row in rows.tolist():
            table.integrate(row, now)
        if len(rows):
            for line, column in enumerate(LOADS):
                getattr(table, column)[rows] += change[line, rows]
            self._sums = sums

    @property
    def is_dirty(self) -> bool:
        """Something was said since the last `settle`."""
        return self._is_dirty

    def own(self, table: EndpointTable) -> Floats:
        """Our own leases: the table without the others', shape `(columns, n)`."""
        both: Floats = np.stack([getattr(table, column) for column in LOADS])
        return both - self._sums

    def multiple(self, table: EndpointTable) -> float:
        """All routers' sequences over our own; 1 where there are none."""
        theirs = float(self._sums[LOADS.index("sequences")].sum())
        if theirs <= 0:
            return 1.0
        ours = float(table.sequences.sum()) - theirs
        return 1.0 + theirs / max(ours, 1.0)

    def theirs(self, column: str, row: int) -> float:
        """What the others have in a column of one row."""
        return float(self._sums[LOADS.index(column), row])


def _moved(old: Floats, count: int, here: list[int], there: list[int]) -> Floats:
    moved: Floats = np.zeros((len(old), count))
    moved[:, here] = old[:, there]
    return moved
