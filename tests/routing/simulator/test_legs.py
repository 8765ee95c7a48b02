"""The jobs of one attempt, and the calls that a router gets for them."""

from typing import Any

from routing.simulator.scenario import Trouble
from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import H100, MI325X, arrival, fleet_of, member, simulation


def pair_run(*names: str, output: int = 50, **options: Any) -> Simulation:
    fleet = fleet_of(member(H100, 1, role="prefill"), member(MI325X, 1, role="decode"))
    requests = [arrival(name, at=2.0 * turn, output=output) for turn, name in enumerate(names)]
    run = simulation(fleet, *requests, policy="llm-d-weighted", **options)
    run.run()
    return run


def test_a_pair_moves_the_prompt_and_answers_at_the_destination() -> None:
    run = pair_run("a")
    course = run.courses[0]

    assert (course.outcome, course.prefill) == ("ok", "nvidia-h100-nvl-0")
    profile = run.replicas["amd-mi325x-1"].profile
    assert run.links.bytes_moved == 640 * profile.kv_bytes_per_token
    spent = run.spent()
    assert spent["nvidia-h100-nvl-0"].decode == 0.0
    assert spent["amd-mi325x-1"].decode > 40 * profile.step_seconds


def test_the_destination_fetches_only_what_it_does_not_hold() -> None:
    run = pair_run("a", "a")

    profile = run.replicas["amd-mi325x-1"].profile
    assert run.links.bytes_moved == (640 + 64) * profile.kv_bytes_per_token


def test_hits_of_a_pair_are_those_of_the_prefill_end() -> None:
    run = pair_run("a", "a")

    assert [course.cached_tokens for course in run.courses] == [0, 9 * 64]


def test_blocks_are_given_back_when_they_were_fetched() -> None:
    run = pair_run("a", output=2)

    assert not run.replicas["nvidia-h100-nvl-0"].held


def test_the_router_hears_of_tokens_while_they_are_made() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(fleet, arrival("a", output=1000))
    run.advance(3.5)
    (lease,) = run.router._known.leases._open.values()

    job = run.flights[0]._legs
    assert job is not None
    # A count a second, so that what the router knows is half a second old.
    assert 0.7 * job.made < lease.output_seen < job.made


def test_a_stream_that_is_cut_counts_what_came() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(
        fleet,
        arrival("a", output=1000),
        troubles=(Trouble(at=3.0, endpoint="nvidia-h100-nvl-0", kind="die"),),
    )

    run.run()

    assert 300 < run.courses[0].output_tokens < 600


def test_an_answer_that_is_not_streamed_teaches_only_at_its_end() -> None:
    fleet = fleet_of(member(H100, 1))
    run = simulation(fleet, arrival("a", output=300, is_streamed=False))
    run.advance(1.5)
    (lease,) = run.router._known.leases._open.values()
    assert lease.first_token_at is None

    run.run()

    course = run.courses[0]
    assert course.outcome == "ok"
    assert course.ttft is not None
    assert course.ttft < 0.1


def test_an_answer_that_is_not_streamed_is_asked_for_again_when_its_engine_dies() -> None:
    fleet = fleet_of(member(H100, 2))
    first = simulation(fleet, arrival("a", output=300, is_streamed=False))
    first.run()
    chosen = first.courses[0].destination
    assert chosen is not None

    run = simulation(
        fleet,
        arrival("a", output=300, is_streamed=False),
        troubles=(Trouble(at=1.0, endpoint=chosen, kind="die"),),
    )
    run.run()

    course = run.courses[0]
    assert (course.outcome, course.attempts, course.output_tokens) == ("ok", 2, 300)
    assert course.first_token_at is not None
    assert course.first_token_at > 1.0
