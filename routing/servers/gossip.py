"""Moves what pools tell their peers, every few milliseconds; the content is `pool.peering`'s.

One per process that serves requests. `post` takes a packet away: to the router's other processes
(through their supervisor), to other routers (through the peer port), or both.
"""

import asyncio
import logging
from collections.abc import Callable

from routing.core.peer_messages import decode, encode
from routing.servers import clock
from routing.servers.state import RouterState

logger = logging.getLogger(__name__)

TELL_SECONDS = 0.01
IDLE_SECONDS = 0.02
"""While no request is open here: waking up costs more than what there is to say."""
SETTLE_SECONDS = 0.1
"""How often it is looked whether a silent peer's load has to fade."""

Post = Callable[[bytes], None]


class Gossip:
    """See the module; start and stop it inside the loop."""

    def __init__(self, state: RouterState, *, node: str, post: Post) -> None:
        self._state = state
        self._node = node
        self._post = post
        self.epoch = int(clock.unix_now() * 1e6)
        """Grows from one life of the node to the next."""
        self._timer: asyncio.TimerHandle | None = None
        self._settle_at = 0.0

    def start(self) -> None:
        """Begin to tell."""
        self.follow_documents()
        self._tick()

    def follow_documents(self) -> None:
        """Take part in every pool that is loaded; call it after each swap."""
        for pool in self._state.directory.pools.values():
            if not pool.router.peers.is_joined:
                pool.router.peers.join(node=self._node, epoch=self.epoch)

    def stop(self) -> None:
        """Say good-bye: the leases of this node are over."""
        if self._timer:
            self._timer.cancel()
        for pool in self._state.directory.pools.values():
            if pool.router.peers.is_joined:
                self._post(encode(pool.router.peers.farewell()))

    def hear(self, raw: bytes) -> None:
        """Take a packet of a peer; one that makes no sense is counted and dropped."""
        now, began = clock.monotonic(), clock.cpu_seconds()
        try:
            packet = decode(raw)
            pool = self._state.directory.pools.get(packet.pool)
            if pool is not None:
                pool.router.peers.hear(packet, now=now)
        except ValueError as error:
            logger.debug("%s", error)
            self._state.metrics.gossip.labels("not understood").inc()
        self._state.metrics.gossip_seconds.inc(clock.cpu_seconds() - began)

    def _tick(self) -> None:
        is_busy = False
        try:
            is_busy = self._tell()
        finally:
            # One round that fails must not be the last one.
            pause = TELL_SECONDS if is_busy else IDLE_SECONDS
            self._timer = asyncio.get_running_loop().call_later(pause, self._tick)

    def _tell(self) -> bool:
        """Send what is due; true while there is work to tell about."""
        now, began = clock.monotonic(), clock.cpu_seconds()
        is_due = now >= self._settle_at
        if is_due:
            self._settle_at = now + SETTLE_SECONDS
        is_busy = False
        for pool in self._state.directory.pools.values():
            peers = pool.router.peers
            is_busy = is_busy or peers.is_busy
            if is_due or peers.is_dirty:
                peers.settle(now=now)
            for packet in peers.tell(now=now):
                self._post(encode(packet))
        self._state.metrics.gossip_seconds.inc(clock.cpu_seconds() - began)
        return is_busy
