"""Retries, hand-overs and continued streams of one request, as a server does them."""

import gc
from typing import Any

from routing.core.document import Disaggregation, Limits
from routing.simulator.fleet import Fleet
from routing.simulator.flight import Flight
from routing.simulator.requests import Course
from routing.simulator.scenario import Trouble
from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import GAUDI, H100, MI325X, arrival, fleet_of, member, simulation

LONG = 2000
"""Output tokens that take some 12 s."""


def two(**limits: Any) -> Fleet:
    return fleet_of(member(H100, 2), limits=Limits(**limits))


def pairs(prefills: int = 2, decodes: int = 2, **disaggregation: Any) -> Fleet:
    return fleet_of(
        member(H100, prefills, role="prefill"),
        member(MI325X, decodes, role="decode"),
        disaggregation=Disaggregation(**disaggregation),
    )


def run_of(fleet: Fleet, *troubles: Trouble, **options: Any) -> Simulation:
    """One long request, and what happens meanwhile."""
    if fleet.document.role_mode == "disaggregated":
        # It always asks for a pair.
        options["policy"] = "llm-d-weighted"
    run = simulation(fleet, arrival("a", output=LONG), troubles=troubles, **options)
    run.run()
    assert run.router.leases_open == 0
    return run


def everywhere(fleet: Fleet, role: str, kind: Any, at: float) -> tuple[Trouble, ...]:
    return tuple(
        Trouble(at=at, endpoint=spec.id, kind=kind)
        for spec in fleet.document.endpoints
        if spec.role == role
    )


def first_choice(fleet: Fleet) -> Course:
    """Where an undisturbed run goes."""
    return run_of(fleet).courses[0]


def test_a_dead_endpoint_is_left_for_another_one() -> None:
    chosen = first_choice(two()).destination
    assert chosen is not None

    course = run_of(two(), Trouble(at=0.0, endpoint=chosen, kind="die")).courses[0]

    assert (course.outcome, course.attempts) == ("ok", 2)
    assert course.destination != chosen


def test_no_more_is_tried_than_the_pool_allows() -> None:
    fleet = two(attempts=1)

    course = run_of(fleet, *everywhere(fleet, "both", "die", 0.0)).courses[0]

    assert (course.outcome, course.attempts) == ("failed", 1)


def test_a_hang_before_the_first_token_is_a_timeout_and_another_endpoint_answers() -> None:
    fleet = two(first_token_timeout_seconds=2.0)
    chosen = first_choice(fleet).destination
    assert chosen is not None

    course = run_of(fleet, Trouble(at=0.0, endpoint=chosen, kind="hang")).courses[0]

    assert course.outcome == "ok"
    assert course.destination != chosen
    assert course.ttft is not None
    assert 2.0 <= course.ttft < 2.5


def test_a_stream_that_breaks_fails_where_the_pool_does_not_let_it_go_on() -> None:
    fleet = two()
    chosen = first_choice(fleet).destination
    assert chosen is not None

    course = run_of(fleet, Trouble(at=3.0, endpoint=chosen, kind="die")).courses[0]

    assert course.outcome == "failed"
    assert 0 < course.output_tokens < LONG
    assert course.ended_at == 3.0


def test_a_stream_goes_on_elsewhere_with_what_it_has() -> None:
    fleet = two(streams_continue=True)
    whole = first_choice(fleet)
    assert whole.destination is not None
    assert whole.ended_at is not None

    course = run_of(fleet, Trouble(at=3.0, endpoint=whole.destination, kind="die")).courses[0]

    assert (course.outcome, course.output_tokens) == ("ok", LONG)
    assert course.destination != whole.destination
    assert course.ttft == whole.ttft
    assert course.ended_at is not None
    assert whole.ended_at < course.ended_at < whole.ended_at + 1.0


def test_a_silent_stream_is_broken_after_the_time_for_it() -> None:
    fleet = two(stall_timeout_seconds=1.5)
    chosen = first_choice(fleet).destination
    assert chosen is not None

    course = run_of(fleet, Trouble(at=3.0, endpoint=chosen, kind="hang")).courses[0]

    assert course.outcome == "failed"
    assert course.ended_at is not None
    assert 4.5 <= course.ended_at < 4.52


def test_a_broken_stream_waits_for_an_endpoint_to_come_back() -> None:
    fleet = fleet_of(member(H100, 1), member(GAUDI, 1), limits=Limits(streams_continue=True))
    first, second = (spec.id for spec in fleet.document.endpoints)
    # Failures of others have opened the breaker of the only other endpoint.
    others = [arrival("b", at=0.01 * turn, output=2) for turn in range(40)]
    troubles = (
        Trouble(at=0.0, endpoint=second, kind="die"),
        Trouble(at=2.0, endpoint=second, kind="start"),
        Trouble(at=2.5, endpoint=first, kind="die"),
    )
    run = simulation(
        fleet, *others, arrival("a", at=1.5, output=400), troubles=troubles, policy="random"
    )

    run.run()

    course = run.courses[-1]
    assert (course.outcome, course.destination) == ("ok", second)
    assert course.output_tokens == 400


def test_a_dead_prefill_endpoint_is_replaced_by_another_one() -> None:
    chosen = first_choice(pairs()).prefill
    assert chosen is not None

    course = run_of(pairs(), Trouble(at=0.0, endpoint=chosen, kind="die")).courses[0]

    assert course.outcome == "ok"
    assert course.prefill not in (None, chosen)


def test_after_two_dead_prefill_endpoints_the_prompt_is_computed_where_it_is_decoded() -> None:
    fleet = pairs()

    course = run_of(fleet, *everywhere(fleet, "prefill", "die", 0.0)).courses[0]

    assert (course.outcome, course.prefill, course.attempts) == ("ok", None, 3)


def test_a_long_prompt_is_not_computed_in_the_wrong_place() -> None:
    fleet = pairs(local_prefill_tokens=100)

    course = run_of(fleet, *everywhere(fleet, "prefill", "die", 0.0)).courses[0]

    assert course.outcome == "prefill-unavailable"


def test_a_computed_prompt_is_handed_on_when_its_destination_is_dead() -> None:
    fleet = pairs()
    whole = first_choice(fleet)
    assert whole.prefill is not None
    assert whole.destination is not None

    run = run_of(fleet, Trouble(at=0.001, endpoint=whole.destination, kind="die"))
    course = run.courses[0]

    assert course.outcome == "ok"
    assert course.prefill == whole.prefill
    assert course.destination != whole.destination
    # Its prompt was computed once.
    assert run.replicas[whole.prefill].prompt_tokens == course.arrival.prompt.tokens


def test_a_destination_that_does_not_fetch_in_time_is_left() -> None:
    fleet = pairs(transfer_timeout_seconds=1.0)
    whole = first_choice(fleet)
    assert whole.destination is not None

    course = run_of(fleet, Trouble(at=0.001, endpoint=whole.destination, kind="hang")).courses[0]

    assert course.outcome == "ok"
    assert course.destination != whole.destination
    assert course.ttft is not None
    assert course.ttft > 1.0


def test_a_prompt_whose_holder_died_is_computed_where_it_is_decoded() -> None:
    fleet = pairs(prefills=1, decodes=1)
    source, destination = (spec.id for spec in fleet.document.endpoints)
    troubles = (
        Trouble(at=0.001, endpoint=destination, kind="hang"),
        Trouble(at=2.0, endpoint=source, kind="die"),
        Trouble(at=3.0, endpoint=destination, kind="slow", speed=1.0),
    )

    run = run_of(fleet, *troubles)
    course = run.courses[0]

    assert (course.outcome, course.attempts) == ("ok", 1)
    assert run.spent()[destination].prefill > 0.02


def test_blocks_that_nobody_fetches_are_dropped() -> None:
    fleet = pairs(prefills=1, decodes=1)
    source, destination = (spec.id for spec in fleet.document.endpoints)

    run = run_of(fleet, Trouble(at=0.001, endpoint=destination, kind="hang"), timeout_seconds=5.0)
    assert run.replicas[source].held
    run.advance(40.0)

    assert run.courses[0].outcome == "timeout"
    assert not run.replicas[source].held
    assert run.replicas[source].expired_holds == 1


def test_a_client_leaves_after_its_time_and_the_engine_stops() -> None:
    run = run_of(two(), timeout_seconds=2.0)
    course = run.courses[0]

    assert (course.outcome, course.ended_at) == ("timeout", 2.0)
    assert 0 < course.output_tokens < LONG
    assert all(replica.running == 0 for replica in run.replicas.values())


def test_a_refusal_is_told_by_its_code() -> None:
    fleet = two()
    drained = [Trouble(at=0.0, endpoint=spec.id, kind="die") for spec in fleet.document.endpoints]
    requests = [arrival("a", at=0.1 * turn) for turn in range(40)]
    run = simulation(fleet, *requests, troubles=tuple(drained))

    run.run()

    # After some failures the breakers are open.
    assert {"failed", "no-capacity"} <= {course.outcome for course in run.courses}


def test_predictions_are_those_of_the_attempt_that_answered() -> None:
    course = run_of(two()).courses[0]

    assert course.predicted_ttft is not None
    assert course.predicted_ttft > 0
    assert course.decided_at == 0.0


def test_a_whole_answer_that_came_leaves_nothing_of_its_request() -> None:
    whole = [arrival(str(number), at=float(number), is_streamed=False) for number in range(40)]
    run = simulation(two(), *whole)

    run.run()
    gc.collect()

    assert [course.outcome for course in run.courses] == ["ok"] * 40
    assert not [each for each in gc.get_objects() if type(each) is Flight]
