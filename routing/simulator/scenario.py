"""What to simulate: a fleet, its traffic, a policy, and how the world around them behaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from routing.core.document import PoolDocument
from routing.simulator.profiles import Profile
from routing.simulator.requests import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that happens to a replica, or to the router."""

    at: float
    """Seconds after the start of the run."""
    endpoint: str = ""
    """Empty for the router."""
    kind: Literal["die", "start", "hang", "slow", "lose-events", "restart-router"]
    speed: float = 1.0
    """For `slow`: of the profile's speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """How signals travel, how fast the router is, how patient clients are. Seconds."""

    scrape_seconds: float = 0.5
    """Between two readings of each engine's metrics."""
    scrape_delay_seconds: float = 0.01
    """From an engine's state to the router's knowledge of it."""
    has_events: bool = False
    """Engines publish what enters and leaves their caches."""
    event_delay_seconds: float = 0.02
    events_can_replay: bool = True
    """Engines send again what a router missed."""
    progress_seconds: float = 1.0
    """How often the router counts the tokens of its streams; a real one does with each event."""
    router_seconds_per_request: float = 0.0
    """0 is a router without a limit."""
    router_seconds_per_open_request: float = 0.0
    """What each request that is open adds to the way of the next: the router relays its stream."""
    router_processes: int = 1
    routers: int = 1
    """Each request comes to one of them at random; each knows what it sees and is told."""
    do_routers_gossip: bool = True
    gossip_delay_seconds: float = 0.002
    gossip_loss: float = 0.0
    """Share of packets that do not arrive."""
    timeout_seconds: float | None = 300.0
    """After which a client leaves."""
    connect_failure_seconds: float = 0.005
    """Until a dead endpoint's connection is refused."""
    stage_gap_seconds: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that a run depends on, but for the seed."""

    document: PoolDocument
    profiles: Mapping[str, Profile]
    """By endpoint id."""
    workload: Workload
    policy: str = "consort"
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Of endpoints that are not as fast as their class."""
    surroundings: Surroundings = field(default_factory=Surroundings)
    troubles: tuple[Trouble, ...] = ()
    ttft_target_seconds: float = 3.0
    tpot_target_seconds: float = 0.08
    """What counts as goodput."""
