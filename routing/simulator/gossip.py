"""What routers of one pool tell each other, late, and now and then not at all."""

from collections.abc import Callable, Sequence

import numpy as np

from routing.core.peer_messages import Packet, decode, encode
from routing.pool.router import PoolRouter
from routing.simulator.clock import SIGNAL, Clock
from routing.simulator.scenario import Surroundings

TELL_SECONDS = 0.01
"""Between two packets of a router, as a server sends them."""


class Gossip:
    """Packets are the bytes that servers send. `stop` ends the ticks."""

    def __init__(
        self,
        clock: Clock,
        routers: Sequence[PoolRouter],
        surroundings: Surroundings,
        *,
        rng: np.random.Generator,
    ) -> None:
        self._clock, self._routers, self._around, self._rng = clock, routers, surroundings, rng
        self._is_on = True
        for number, router in enumerate(routers):
            router.peers.join(node=f"router-{number}", epoch=1)
            # Processes do not tick in step.
            offset = TELL_SECONDS * number / len(routers)
            clock.after(offset, self._ticker(router), priority=SIGNAL)

    def stop(self) -> None:
        """Nobody tells any more."""
        self._is_on = False

    def _ticker(self, router: PoolRouter) -> Callable[[float], None]:
        def tick(now: float) -> None:
            router.peers.settle(now=now)
            for packet in router.peers.tell(now=now):
                self._send(router, encode(packet))
            if self._is_on:
                self._clock.after(TELL_SECONDS, tick, priority=SIGNAL)

        return tick

    def _send(self, sender: PoolRouter, raw: bytes) -> None:
        for other in self._routers:
            if other is not sender and self._rng.random() >= self._around.gossip_loss:
                self._clock.after(
                    self._around.gossip_delay_seconds, _hearing(other, decode(raw)), priority=SIGNAL
                )


def _hearing(router: PoolRouter, packet: Packet) -> Callable[[float], None]:
    return lambda now: router.peers.hear(packet, now=now)
