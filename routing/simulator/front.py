"""One router of a pool as its requests see it: the router, its CPU, its queue and its deadlines."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from routing.core.decision import Decision
from routing.core.request import InferenceRequest
from routing.pool.router import PoolRouter
from routing.simulator.clock import ARRIVAL, Clock
from routing.simulator.engine.replica import Replica
from routing.simulator.flight import Flight
from routing.simulator.legs import Wait
from routing.simulator.network import Links, Station
from routing.simulator.patience import Patience
from routing.simulator.scenario import Scenario
from routing.simulator.waiting_room import WaitingRoom


@dataclass(frozen=True, slots=True)
class Field:
    """What all routers of a run share."""

    clock: Clock
    replicas: Mapping[str, Replica]
    links: Links
    flights: dict[int, Flight]
    """Requests that are not over, by number."""


class Front:
    """See `flight.Tower`."""

    def __init__(
        self,
        scenario: Scenario,
        router: PoolRouter,
        field: Field,
        *,
        ended: Callable[[Flight, float], None],
    ) -> None:
        """`ended` is told of each request that is over."""
        self.around = around = scenario.surroundings
        self.router, self.clock = router, field.clock
        self.replicas, self.links = field.replicas, field.links
        self.station = Station(
            around.router_seconds_per_request,
            around.router_processes,
            around.router_seconds_per_open_request,
        )
        self.room = WaitingRoom(
            field.clock, router, lambda request, now: self.decide(request, now=now)
        )
        self._policy, self._flights, self._ended = scenario.policy, field.flights, ended
        self.patience: Mapping[Wait, Patience] = self._deadlines()
        self._clients = self._patience(around.timeout_seconds or math.inf, self._give_up)
        self._open = 0

    def receive(self, flight: Flight, now: float) -> None:
        """A client sent a request to this router."""
        number = flight.course.number
        self._flights[number] = flight
        if self.around.timeout_seconds is not None:
            self._clients.start(number, 0)
        passes = self.station.passes(now, self._open)
        self._open += 1
        if passes > now:
            self.clock.at(passes, flight.enter, priority=ARRIVAL)
        else:
            flight.enter(now)

    def decide(
        self, request: InferenceRequest, *, now: float, exclude: frozenset[str] = frozenset()
    ) -> Decision:
        """See `Tower`."""
        return self.router.decide(request, now=now, exclude=exclude, policy=self._policy)

    def over(self, flight: Flight, now: float) -> None:
        """See `Tower`."""
        self._open -= 1
        del self._flights[flight.course.number]
        self.room.gone(flight)
        self._ended(flight, now)

    def _deadlines(self) -> dict[Wait, Patience]:
        document = self.router.document
        first = document.limits.first_token_timeout_seconds
        waits: dict[Wait, float] = {
            "first": first,
            "transfer": min(first, document.disaggregation.transfer_timeout_seconds),
            "stall": document.limits.stall_timeout_seconds,
        }
        return {what: self._patience(wait, self._late(what)) for what, wait in waits.items()}

    def _patience(self, seconds: float, missed: Callable[[int, int, float], None]) -> Patience:
        return Patience(self.clock, seconds, missed, still_open=self._flights)

    def _late(self, what: Wait) -> Callable[[int, int, float], None]:
        return lambda number, attempt, now: self._flights[number].late(what, attempt, now)

    def _give_up(self, number: int, attempt: int, now: float) -> None:
        self._flights[number].give_up(now)
