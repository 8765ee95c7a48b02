"""As many requests are open as there are clients, until all are answered."""

from typing import Any

from routing.simulator.fleet import Member, build_fleet
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.closed_loop import ClosedLoop
from tests.routing.simulator.workloads.draws import chain, drawn, small


def _loop(**changes: Any) -> ClosedLoop:
    fields = {"requests_per_client": 5} | changes
    return ClosedLoop(id="c", of=small(), clients=(4, 8), **fields)


def test_each_client_sends_its_requests_one_after_the_other() -> None:
    firsts = drawn(_loop(), 1)

    assert len(firsts) == 8
    assert [len(list(chain(first))) for first in firsts] == [5] * 8
    assert [first.at for first in firsts] == [place / 8 for place in range(8)]


def test_a_client_goes_on_after_a_failure() -> None:
    assert all(one.goes_on for first in drawn(_loop()) for one in list(chain(first))[:-1])


def test_never_more_requests_are_open_than_clients() -> None:
    fleet = build_fleet([Member(accelerator="amd-mi325x", count=2)], model="granite-4.1-8b")
    scenario = Scenario(document=fleet.document, profiles=fleet.profiles, workload=_loop())
    run = Simulation(scenario, seed=1)

    most = 0
    while not run.is_over:
        run.clock.step()
        most = max(most, len(run.flights))

    assert most == 8
    assert [course.outcome for course in run.courses] == ["ok"] * (4 * 5 + 8 * 5)


def test_clients_pause_if_they_are_to() -> None:
    pauses = [
        one.pause_seconds for first in drawn(_loop(pause_seconds=2.0)) for one in chain(first)
    ]

    assert max(pauses) > 0
    assert all(one.pause_seconds == 0 for first in drawn(_loop()) for one in chain(first))
