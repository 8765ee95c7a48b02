"""Several routers before one fleet."""

from typing import Any

from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import H100, arrival, digest, fleet_of, member, simulation


def crowd(**surroundings: Any) -> Simulation:
    """Prompts of a few texts, through two routers."""
    fleet = fleet_of(member(H100, 4))
    requests = [
        arrival(f"p{turn % 6}", at=0.1 * turn, output=20, tokens=3000) for turn in range(60)
    ]
    run = simulation(fleet, *requests, routers=2, **surroundings)
    run.run()
    return run


def hits(run: Simulation) -> int:
    return sum(course.cached_tokens for course in run.courses)


def test_each_router_gets_its_share_and_is_left_without_a_lease() -> None:
    run = crowd()

    assert {course.outcome for course in run.courses} == {"ok"}
    assert [front.router.leases_open for front in run.fronts] == [0, 0]
    assert all(front.router.ids.next() != "0" for front in run.fronts)


def test_routers_that_tell_each_other_find_more_in_the_caches() -> None:
    assert hits(crowd()) > hits(crowd(do_routers_gossip=False))


def test_packets_that_are_lost_tell_nothing() -> None:
    assert hits(crowd(gossip_loss=1.0)) < hits(crowd())


def test_what_is_lost_is_the_same_again_with_the_same_seed() -> None:
    assert digest(crowd(gossip_loss=0.5)) == digest(crowd(gossip_loss=0.5))
