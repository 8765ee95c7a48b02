"""Two equal pools, the same requests, two policies: the published three-vendor fleet by default.

Left is what a Kubernetes Service does (a random endpoint per request), right is Consort. Both get
the same seed, and a new rate at the same virtual moment, so that every request of one side has its
twin on the other.
"""

from collections import deque
from decimal import Decimal
from typing import Any, cast

import msgspec

from routing.core.document import Policy, PolicyName, Slo
from routing.simulator.fleet import build_fleet
from routing.simulator.live.meter import Load, Meter, Reading, loads_of
from routing.simulator.race.fleets import FLEETS
from routing.simulator.race.heat import WAITING_ROOM
from routing.simulator.report.prices import list_currency
from routing.simulator.scenario import Scenario, Surroundings
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.building import build
from routing.simulator.workloads.live import Live
from routing.simulator.workloads.open_loop import OpenLoop

FLEET, WORKLOAD = "nxt-3vendor", "nxt-granite-6k"
POLICIES: tuple[PolicyName, PolicyName] = ("random", "consort")
TTFT_SECONDS, TPOT_SECONDS = 3.0, 0.08
"""What counts as goodput, as in the race."""
READ_EVERY_SECONDS = 5.0
KEPT_READINGS = 61
"""Five minutes of virtual time, with both ends."""
PIECE_SECONDS = 0.5
"""Most virtual time between two looks at the rest of the world."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One pool as it is now."""

    policy: str
    readings: tuple[Reading, ...]
    """Of the last minutes, oldest first."""
    loads: tuple[Load, ...]
    sent: int
    answered: int
    failed: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Both pools at one virtual moment. All of it is simulated."""

    at: float
    rate_qps: float
    rate_since: float
    """Virtual moment from which on this rate has been offered."""
    sides: tuple[Side, Side]
    currency: str
    price_per_hour: Decimal | None
    """Of one side's fleet."""


class Duel:
    """`advance` it, change its `rate_qps`, `view` it. Equal seeds and rates give equal views."""

    def __init__(
        self, *, rate_qps: float, seed: int, fleet: str = FLEET, workload: str = WORKLOAD
    ) -> None:
        """Names are those of the race. Raises KeyError or DocumentError for unknown ones."""
        self._lanes = tuple(
            _Lane(policy, rate_qps=rate_qps, seed=seed, fleet=fleet, workload=workload)
            for policy in POLICIES
        )
        self._next_reading = READ_EVERY_SECONDS
        self._rate_since = 0.0

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self._lanes[0].run.clock.now

    @property
    def rate_qps(self) -> float:
        """Requests per second offered to each side; see `Live` for its bounds."""
        return self._lanes[0].traffic.rate_qps

    @rate_qps.setter
    def rate_qps(self, rate: float) -> None:
        if rate != self.rate_qps:
            self._rate_since = self.now
        for lane in self._lanes:
            lane.traffic.rate_qps = rate

    @property
    def open_requests(self) -> int:
        """Of the side that has more."""
        return max(len(lane.run.flights) for lane in self._lanes)

    def advance(self, seconds: float) -> None:
        """Both sides, by at most `PIECE_SECONDS` and to the same moment."""
        until = self.now + min(seconds, PIECE_SECONDS)
        is_due = until >= self._next_reading
        for lane in self._lanes:
            lane.run.advance(until)
            if is_due:
                lane.readings.append(lane.meter.read(lane.run))
        if is_due:
            self._next_reading += READ_EVERY_SECONDS

    def view(self) -> View:
        """What is true now."""
        left, right = self._lanes
        document = left.run.scenario.document
        prices = [spec.price_per_hour for spec in document.endpoints]
        known = [Decimal(price) for price in prices if price is not None]
        return View(
            at=self.now,
            rate_qps=self.rate_qps,
            rate_since=self._rate_since,
            sides=(left.side(), right.side()),
            currency=document.currency or "",
            price_per_hour=sum(known, Decimal(0)) if len(known) == len(prices) else None,
        )


class _Lane:
    """One side."""

    def __init__(
        self, policy: PolicyName, *, rate_qps: float, seed: int, fleet: str, workload: str
    ) -> None:
        # A workload of its own: what it draws depends on its generator only.
        self.traffic = Live(cast(OpenLoop, build(workload).workload), rate_qps=rate_qps)
        scenario = _scenario(policy, self.traffic, fleet)
        self.meter = Meter(scenario)
        self.run = Simulation(scenario, seed=seed, ended=self.meter.ended)
        self.readings: deque[Reading] = deque(maxlen=KEPT_READINGS)

    def side(self) -> Side:
        return Side(
            policy=self.run.scenario.policy,
            readings=tuple(self.readings),
            loads=tuple(loads_of(self.run)),
            sent=self.run.sent,
            answered=self.meter.answered,
            failed=self.meter.failed,
        )


def _scenario(policy: PolicyName, traffic: Live, name: str) -> Scenario:
    fleet = FLEETS[name]
    built = build_fleet(
        fleet.members,
        model=fleet.model,
        block_tokens=traffic.block_tokens,
        policy=Policy(name=policy),
        slo=Slo(ttft_seconds=TTFT_SECONDS, tpot_seconds=TPOT_SECONDS),
        admission=WAITING_ROOM if policy == "consort" else None,
    ).in_currency(list_currency())
    workload: Any = traffic
    return Scenario(
        document=built.document,
        profiles=built.profiles,
        workload=workload,
        policy=policy,
        speeds=built.speeds,
        surroundings=Surroundings(has_events=True),
        troubles=fleet.troubles,
        ttft_target_seconds=TTFT_SECONDS,
        tpot_target_seconds=TPOT_SECONDS,
    )
