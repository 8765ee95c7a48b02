"""Requests that wait in the router, released as capacity comes free."""

from typing import Any

from routing.core.document import Admission
from routing.core.specs.admission import Band
from routing.simulator.scenario import Trouble
from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import H100, arrival, fleet_of, member, simulation


def crowd(*, size: int = 40, output: int = 60, **admission: Any) -> Simulation:
    """Cold prompts, which come faster than they are computed."""
    bounds = {"queue_requests": 100, "saturation_seconds": 0.5} | admission
    fleet = fleet_of(member(H100, 1, max_sequences=2), admission=Admission(**bounds))
    arrivals = [
        arrival(f"p{turn}", at=0.01 * turn, output=output, tokens=3000) for turn in range(size)
    ]
    run = simulation(fleet, *arrivals)
    run.run()
    assert all(len(front.room) == 0 for front in run.fronts)
    return run


def ends(run: Simulation) -> dict[str, int]:
    found: dict[str, int] = {}
    for course in run.courses:
        found[course.outcome] = found.get(course.outcome, 0) + 1
    return found


def test_without_a_queue_a_full_pool_takes_everything() -> None:
    run = crowd(queue_requests=0)

    assert all(course.decided_at == course.sent_at for course in run.courses)


def test_a_full_pool_lets_requests_wait_and_answers_them_in_order() -> None:
    run = crowd()

    assert ends(run) == {"ok": 40}
    decided = [course.decided_at for course in run.courses if course.decided_at is not None]
    assert len(decided) == 40
    assert decided == sorted(decided)
    waits = [course.decided_at - course.sent_at for course in run.courses if course.decided_at]
    assert max(waits) > 1.0


def test_who_waits_too_long_is_refused() -> None:
    run = crowd(queue_seconds=1.0)

    assert set(ends(run)) == {"ok", "pool-saturated"}
    for course in run.courses:
        if course.outcome != "ok":
            assert course.ended_at is not None
            assert 1.0 <= course.ended_at - course.sent_at < 1.1


def test_a_full_queue_refuses_at_once() -> None:
    run = crowd(queue_requests=5)

    refused = [course for course in run.courses if course.outcome == "pool-saturated"]
    assert refused
    assert all(course.ended_at == course.sent_at for course in refused)


def test_a_client_that_leaves_while_it_waits_leaves_the_queue() -> None:
    fleet = fleet_of(
        member(H100, 1, max_sequences=1),
        admission=Admission(queue_requests=100, saturation_seconds=0.2),
    )
    arrivals = [arrival(f"p{turn}", output=2, tokens=6000) for turn in range(40)]
    run = simulation(fleet, *arrivals, timeout_seconds=1.5)

    run.run()

    assert set(ends(run)) == {"ok", "timeout"}
    assert any(course.decided_at is None for course in run.courses)
    assert len(run.router.queue) == 0


def test_who_waits_when_the_router_starts_anew_is_cut_once() -> None:
    fleet = fleet_of(
        member(H100, 1, max_sequences=1),
        admission=Admission(queue_requests=100, saturation_seconds=0.2, queue_seconds=2.0),
    )
    arrivals = [arrival(f"p{turn}", output=2, tokens=6000) for turn in range(40)]
    run = simulation(fleet, *arrivals, troubles=(Trouble(at=1.0, kind="restart-router"),))

    run.run()

    assert run.is_over
    assert set(ends(run)) == {"ok", "failed"}
    assert any(course.decided_at is None for course in run.courses)


def test_sheddable_work_is_ended_when_others_starve() -> None:
    fleet = fleet_of(
        member(H100, 1, max_sequences=2),
        admission=Admission(
            queue_requests=100,
            saturation_seconds=0.3,
            evict_sheddable=True,
            bands=(Band(priority=-1, queue_requests=10),),
        ),
    )
    cheap = [arrival(f"c{turn}", output=3000, priority=-1) for turn in range(2)]
    dear = [arrival(f"d{turn}", at=1.0 + 0.01 * turn, tokens=6000) for turn in range(30)]
    run = simulation(fleet, *cheap, *dear)

    run.run()

    assert {course.outcome for course in run.courses[2:]} == {"ok"}
    assert "pool-saturated" in {course.outcome for course in run.courses[:2]}
