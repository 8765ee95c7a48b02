"""One router: its CPU, its clients' patience."""

from tests.routing.simulator.small import H100, arrival, fleet_of, member, simulation


def test_a_router_of_finite_speed_decides_one_after_the_other() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(
        fleet, *(arrival(f"p{turn}") for turn in range(4)), router_seconds_per_request=0.5
    )

    run.run()

    assert [course.decided_at for course in run.courses] == [0.5, 1.0, 1.5, 2.0]


def test_requests_that_are_open_slow_it_down() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(
        fleet,
        arrival("a", output=2000),
        arrival("b", at=1.0),
        arrival("c", at=60.0),
        router_seconds_per_open_request=0.25,
    )

    run.run()

    assert [course.decided_at for course in run.courses] == [0.0, 1.25, 60.0]


def test_a_client_that_left_before_the_router_read_it_costs_no_decision() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(fleet, arrival("a"), timeout_seconds=1.0, router_seconds_per_request=2.0)

    run.run()

    course = run.courses[0]
    assert (course.outcome, course.ended_at, course.attempts) == ("timeout", 1.0, 0)


def test_without_a_time_of_their_own_clients_wait_for_the_pools() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(fleet, arrival("a", output=70_000), timeout_seconds=None)

    run.run()

    assert run.courses[0].outcome == "ok"
    assert run.clock.now > 300.0
