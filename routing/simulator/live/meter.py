"""What one pool does at the moment, over a window of virtual time that moves along.

TTFT is of requests whose first token came within the window, so a queue shows as soon as somebody
comes out of it. Tokens, goodput and hit rate are of requests that were answered within it. Memory
is bounded by the requests of a window and by those that are open.
"""

from collections import Counter, deque
from collections.abc import Iterable
from decimal import Decimal

import msgspec

from routing.simulator.flight import Flight
from routing.simulator.report.stage import is_good, spread_of
from routing.simulator.report.usage import cost_of, cost_per_million
from routing.simulator.requests import Course
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation

WINDOW_SECONDS = 30.0
"""Long enough for some hundred requests, and as long as a stage of the published ladders."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Of one pool over the window that ends at `at`. All of it is simulated; unknown is `None`."""

    at: float
    """Virtual seconds since the start."""
    ttft_p50: float | None
    ttft_p90: float | None
    output_tokens_per_s: float | None
    goodput_rps: float | None
    """Answered within both targets."""
    prefix_hit_rate: float | None
    cost_per_million_output: Decimal | None
    """Price of the whole fleet for the window; `None` without a price or a token."""
    running: int
    waiting: int
    """In engines and in the router."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one engine."""

    endpoint: str
    speed_class: str
    running: int
    waiting: int


class Meter:
    """Give `ended` to the simulation, then `read` it again and again; moments only grow."""

    def __init__(self, scenario: Scenario, *, window_seconds: float = WINDOW_SECONDS) -> None:
        self._scenario, self._window = scenario, window_seconds
        self._over: list[Course] = []
        """Ended since the last reading."""
        self._ended: deque[Course] = deque()
        self._firsts: deque[tuple[float, float]] = deque()
        """`(moment, TTFT)` of first tokens, in order of the readings that saw them."""
        self._read_at = 0.0
        self._ends: Counter[str] = Counter()

    def ended(self, course: Course) -> None:
        """A request is over."""
        self._over.append(course)

    @property
    def answered(self) -> int:
        """Since the start."""
        return self._ends["ok"]

    @property
    def failed(self) -> int:
        """Since the start: whatever ended and was not answered."""
        return self._ends.total() - self._ends["ok"]

    def read(self, run: Simulation) -> Reading:
        """What is true now."""
        now = run.clock.now
        self._take(run.flights.values(), now)
        answered = [course for course in self._ended if course.outcome == "ok"]
        span = min(self._window, now)
        output = sum(course.output_tokens for course in answered)
        prompt = sum(course.arrival.prompt.tokens for course in answered)
        good = sum(is_good(course, self._scenario) for course in answered)
        ttft = spread_of([ttft for _, ttft in self._firsts])
        loads = loads_of(run)
        cost = cost_of(self._scenario.document, span)
        return Reading(
            at=now,
            ttft_p50=ttft.p50 if ttft else None,
            ttft_p90=ttft.p90 if ttft else None,
            output_tokens_per_s=output / span if span else None,
            goodput_rps=good / span if span else None,
            prefix_hit_rate=sum(course.cached_tokens for course in answered) / prompt
            if prompt
            else None,
            cost_per_million_output=cost_per_million(cost, output),
            running=sum(load.running for load in loads),
            waiting=len(run.flights) - sum(load.running for load in loads),
        )

    def _take(self, flights: Iterable[Flight], now: float) -> None:
        seen = self._read_at
        courses = [*self._over, *(flight.course for flight in flights)]
        self._firsts.extend(
            (course.first_token_at, course.first_token_at - course.sent_at)
            for course in courses
            if course.first_token_at is not None and seen < course.first_token_at <= now
        )
        self._ended.extend(self._over)
        self._ends.update(course.outcome for course in self._over)
        self._over.clear()
        self._read_at = now
        begin = now - self._window
        # In order of readings, and moments within one reading differ by less than its distance.
        while self._firsts and self._firsts[0][0] <= begin:
            self._firsts.popleft()
        while self._ended and (self._ended[0].ended_at or 0.0) <= begin:
            self._ended.popleft()


def loads_of(run: Simulation) -> list[Load]:
    """Of every engine, in the document's order."""
    found = []
    for spec in run.scenario.document.endpoints:
        replica = run.replicas[spec.id]
        found.append(
            Load(
                endpoint=spec.id,
                speed_class=spec.speed_class,
                running=replica.running,
                waiting=len(replica.waiting) + len(replica.pulling),
            )
        )
    return found
