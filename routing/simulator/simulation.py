"""A run: arrivals go through the router to the replicas, stage after stage.

The router is `PoolRouter`, called as a server calls it: decide, begin, prefill done, first token,
tokens, end, failures, readings, cache events. Equal scenarios and seeds give equal runs.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from routing.core.openai import ParsedBody
from routing.core.request import InferenceRequest
from routing.pool.router import PoolRouter
from routing.simulator.clock import ARRIVAL, SIGNAL, Clock
from routing.simulator.engine.replica import Replica
from routing.simulator.engine.time_spent import Spent
from routing.simulator.flight import Flight
from routing.simulator.front import Field, Front
from routing.simulator.gossip import Gossip
from routing.simulator.network import Links
from routing.simulator.requests import Arrival, Course, Prompt
from routing.simulator.scenario import Scenario, Trouble
from routing.simulator.signals import Signals

PATH = "/v1/chat/completions"
CUT = "failed"
"""Outcome of a request that a restart of the router ended."""


class Simulation:
    """`run` it to the end, or `advance` it piece by piece and look at `courses` in between."""

    def __init__(
        self, scenario: Scenario, *, seed: int, ended: Callable[[Course], None] | None = None
    ) -> None:
        """With `ended` each course is handed over at its end and forgotten: `courses` stays empty,
        so that a run without an end keeps what is open only."""
        self.scenario, self.seed = scenario, seed
        self._hand_over = ended
        self.around = scenario.surroundings
        self.clock = Clock()
        document = scenario.document
        self.replicas: Mapping[str, Replica] = {
            spec.id: Replica(
                scenario.profiles[spec.id].slower(1 / scenario.speeds.get(spec.id, 1.0)),
                self.clock,
                block_tokens=spec.block_size_tokens,
                max_sequences=spec.max_sequences,
                tells=self.around.has_events,
            )
            for spec in document.endpoints
        }
        self._block_sizes = {spec.block_size_tokens for spec in document.endpoints}
        self.links = Links()
        self.courses: list[Course] = []
        self.sent = 0
        """Requests up to now."""
        self.stage = -1
        self.stage_started_at: list[float] = []
        self.spent_before: list[dict[str, Spent]] = []
        self.spent_after: list[dict[str, Spent]] = []
        """Of each replica when a stage began, and when its last request ended."""
        self.flights: dict[int, Flight] = {}
        """Requests that are not over, by number."""
        self.fronts = self._begin_routers(0.0)
        self.signals = Signals(self.clock, self._routers, self.replicas, self.around)
        self._gossip = self._begin_gossip()
        self._share = np.random.default_rng([seed, 1 << 32])
        """Which router a request comes to."""
        self._open = 0
        self._arrivals: Iterator[Arrival] = iter(())
        self._model = document.models[0].name
        for trouble in scenario.troubles:
            self.clock.at(trouble.at, self._trouble(trouble), priority=SIGNAL)
        self._begin_stage(0.0)

    @property
    def router(self) -> PoolRouter:
        """The router, or the first of several."""
        return self.fronts[0].router

    @property
    def _routers(self) -> list[PoolRouter]:
        return [front.router for front in self.fronts]

    @property
    def is_over(self) -> bool:
        """Every stage was sent and answered."""
        return self.stage >= len(self.scenario.workload.stages)

    def run(self, *, should_stop: Callable[[], bool] = lambda: False) -> None:
        """To the end, or until `should_stop` (asked every some hundred events) says so."""
        turn = 0
        while not self.is_over and self.clock.next_at < math.inf:
            self.clock.step()
            turn += 1
            if turn % 512 == 0 and should_stop():
                return

    def advance(self, until: float) -> None:
        """Up to a moment of virtual time."""
        self.clock.run(until)

    def spent(self) -> dict[str, Spent]:
        """What each replica's time went to up to now, by endpoint id."""
        return {name: replica.spent() for name, replica in self.replicas.items()}

    # Stages.

    def _begin_stage(self, now: float) -> None:
        self.stage += 1
        stages = self.scenario.workload.stages
        if self.stage >= len(stages):
            self.signals.stop()
            if self._gossip is not None:
                self._gossip.stop()
            return
        self.stage_started_at.append(now)
        self.spent_before.append(self.spent())
        rng = np.random.default_rng([self.seed, self.stage])
        self._arrivals = iter(self.scenario.workload.arrivals(self.stage, rng))
        self._open += 1
        self.signals.start()
        if self.stage == 0:
            self.clock.after(self.around.progress_seconds, self._count, priority=SIGNAL)
        self._draw(now)

    def _draw(self, now: float) -> None:
        """Await the next arrival; the stage's own mark on `_open` goes with the last."""
        arrival = next(self._arrivals, None)
        if arrival is None:
            self._closed(now)
            return
        sent_at = max(now, self.stage_started_at[-1] + arrival.at)

        def arrive(when: float) -> None:
            self.send(arrival, when)
            self._draw(when)

        self.clock.at(sent_at, arrive, priority=ARRIVAL)

    def _closed(self, now: float) -> None:
        self._open -= 1
        if not self._open:
            self.spent_after.append(self.spent())
            self.clock.after(self.around.stage_gap_seconds, self._begin_stage)

    # Requests.

    def send(self, arrival: Arrival, now: float) -> None:
        """A client sends a request. Raises ValueError if its blocks are not of an engine's size."""
        if arrival.prompt.block_tokens not in self._block_sizes:
            raise ValueError(
                f"A prompt has blocks of {arrival.prompt.block_tokens} tokens, and the engines have"
                f" blocks of {min(self._block_sizes)}. Build the fleet with `block_tokens` of the"
                " workload."
            )
        course = Course(self.sent, self.stage, arrival, now)
        self.sent += 1
        if self._hand_over is None:
            self.courses.append(course)
        self._open += 1
        fronts = self.fronts
        front = fronts[int(self._share.integers(len(fronts))) if len(fronts) > 1 else 0]
        front.receive(Flight(front, course, self._request(course, now)), now)

    def _ended(self, flight: Flight, now: float) -> None:
        course = flight.course
        arrival = course.arrival
        course.ended_at = now
        if arrival.then is not None and (course.outcome == "ok" or arrival.goes_on):
            self._follow(arrival.then, arrival.pause_seconds)
        # Keys of 100,000 prompts that are not shared would be most of the memory.
        course.arrival = _remembered(arrival)
        if self._hand_over is not None:
            self._hand_over(course)
        self._closed(now)

    def _follow(self, arrival: Arrival, pause_seconds: float) -> None:
        self._open += 1

        def go_on(when: float) -> None:
            self.send(arrival, when)
            self._closed(when)

        self.clock.after(pause_seconds, go_on, priority=ARRIVAL)

    def _request(self, course: Course, now: float) -> InferenceRequest:
        arrival = course.arrival
        return InferenceRequest(
            id=str(course.number),
            path=PATH,
            model=self._model,
            tenant=arrival.tenant,
            project="project",
            key_id="key",
            parsed=self._parsed(
                arrival.prompt, arrival.max_tokens, is_streamed=arrival.is_streamed
            ),
            arrived_at=now,
            priority=arrival.priority,
            session=arrival.session,
        )

    def _parsed(
        self, prompt: Prompt, max_tokens: int | None, *, is_streamed: bool = True
    ) -> ParsedBody:
        return ParsedBody(
            model=self._model,
            stream=is_streamed,
            include_usage=True,
            max_tokens=max_tokens,
            n=1,
            prompt_bytes=4 * prompt.tokens,
            prompt_tokens=prompt.tokens,
            block_keys=np.array(prompt.keys, dtype=np.uint64),
            chunk_tokens=float(prompt.block_tokens),
            has_exact_tokens=self.around.has_events,
            user=None,
        )

    def _count(self, now: float) -> None:
        """Tell the router how far its streams are."""
        for flight in list(self.flights.values()):
            flight.count(now)
        if not self.is_over:
            self.clock.after(self.around.progress_seconds, self._count, priority=SIGNAL)

    # Troubles.

    def _trouble(self, trouble: Trouble) -> Callable[[float], None]:
        def happen(now: float) -> None:
            if trouble.kind == "restart-router":
                self._restart(now)
                return
            replica = self.replicas[trouble.endpoint]
            if trouble.kind == "die":
                replica.die(now)
            elif trouble.kind == "start":
                replica.start(now)
                self.signals.born(trouble.endpoint)
            elif trouble.kind == "lose-events":
                self.signals.deaf.add(trouble.endpoint)
            else:
                replica.change_speed(0.0 if trouble.kind == "hang" else trouble.speed, now)

        return happen

    # Routers.

    def _begin_routers(self, now: float) -> list[Front]:
        field = Field(self.clock, self.replicas, self.links, self.flights)
        seeds = [self.seed + (number << 32) for number in range(self.around.routers)]
        return [
            Front(
                self.scenario,
                PoolRouter(self.scenario.document, seed=seed, now=now),
                field,
                ended=self._ended,
            )
            for seed in seeds
        ]

    def _begin_gossip(self) -> Gossip | None:
        if len(self.fronts) == 1 or not self.around.do_routers_gossip:
            return None
        rng = np.random.default_rng([self.seed, 2 << 32])
        return Gossip(self.clock, self._routers, self.around, rng=rng)

    def _restart(self, now: float) -> None:
        """Other routers, which know nothing; what those before had open is cut."""
        for flight in list(self.flights.values()):
            flight.cut(CUT, now)
        if self._gossip is not None:
            self._gossip.stop()
        self.fronts = self._begin_routers(now)
        self._gossip = self._begin_gossip()
        self.signals.meet(self._routers, now)


def _remembered(arrival: Arrival) -> Arrival:
    """What reports need of a request that is over: no keys."""
    prompt = arrival.prompt
    return replace(
        arrival, prompt=Prompt((), prompt.tokens, prompt.block_tokens), answer_keys=(), then=None
    )
