"""What the router hears: readings, and cache events also after some were lost."""

from typing import Any

import pytest

from routing.simulator.scenario import Trouble
from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import H100, arrival, fleet_of, member, simulation


def events_run(*troubles: Trouble, count: int = 30, **options: Any) -> Simulation:
    fleet = fleet_of(member(H100, 1, kv_tokens=8_000))
    requests = [arrival(f"p{turn % 5}", at=0.2 * turn, output=4) for turn in range(count)]
    return simulation(fleet, *requests, troubles=troubles, **({"has_events": True} | options))


def health(run: Simulation) -> Any:
    (state,) = run.router.caches.events.health.values()
    return state


def believed(run: Simulation, name: str = "p0") -> float:
    """Tokens of a prompt that the router believes to be there."""
    parsed = run._parsed(arrival(name).prompt, None)
    hits = run.router.caches.hits(parsed, run.router.caches.table)
    return float(hits.indexed[0])


def test_events_make_the_router_certain_of_what_an_engine_holds() -> None:
    run = events_run()

    run.run()

    assert health(run).is_exact
    # The last block is computed again, and with it the last token.
    assert believed(run) == 9 * 64


def test_an_evicted_block_is_not_believed_any_more() -> None:
    fleet = fleet_of(member(H100, 1, kv_tokens=1_600))
    requests = [arrival(f"p{turn}", at=0.5 * turn, output=4) for turn in range(6)]
    run = simulation(fleet, *requests, has_events=True)

    run.run()

    # The first one was over before the first event came.
    assert believed(run, "p1") == 0
    assert believed(run, "p5") == 9 * 64


@pytest.mark.parametrize(("can_replay", "state"), [(True, "live"), (False, "doubtful")])
def test_lost_events_are_replayed_or_make_the_router_doubt(can_replay: bool, state: str) -> None:
    name = "nvidia-h100-nvl-0"
    run = events_run(
        Trouble(at=0.5, endpoint=name, kind="lose-events"), events_can_replay=can_replay
    )

    run.run()

    assert health(run).counts["gap"] == 1
    assert health(run).state == state


def test_an_engine_that_starts_anew_holds_nothing_and_says_so() -> None:
    name = "nvidia-h100-nvl-0"
    run = events_run(
        Trouble(at=3.03, endpoint=name, kind="die"),
        Trouble(at=3.04, endpoint=name, kind="start"),
    )

    run.run()

    assert health(run).is_exact
    assert health(run).counts["rollback"] >= 1
    assert believed(run) == 9 * 64


def test_another_router_asks_for_what_it_has_not_heard() -> None:
    run = events_run(Trouble(at=3.0, kind="restart-router"), count=20)

    run.run()

    assert health(run).is_exact
    assert believed(run) == 9 * 64


def test_without_events_the_router_only_hopes() -> None:
    run = events_run(has_events=False)

    run.run()

    assert not run.router.caches.events.health


def test_readings_tell_of_a_new_process() -> None:
    name = "nvidia-h100-nvl-0"
    run = events_run(
        Trouble(at=4.55, endpoint=name, kind="die"),
        Trouble(at=4.56, endpoint=name, kind="start"),
        has_events=False,
        count=24,
    )
    run.advance(4.5)
    before = believed(run)
    run.advance(5.15)

    # Only what was sent since is believed.
    assert before > 0
    assert len(run.replicas[name].cache.idle) < 40
