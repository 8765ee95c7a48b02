"""What holds in every run, whatever happens in it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routing.core.signals import EngineSignals
from routing.core.table import Instance
from routing.simulator.engine.replica import Replica
from routing.simulator.profiles import Profile
from routing.simulator.requests import Arrival, Course, Prompt
from routing.simulator.scenario import Scenario, Trouble
from routing.simulator.simulation import Simulation
from tests.routing.simulator.small import (
    H100,
    MI325X,
    arrival,
    digest,
    fleet_of,
    member,
    scenarios,
    simulation,
)

RANDOM_RUNS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 3)


def steps_of(run: Simulation) -> Iterator[float]:
    """Run event by event."""
    while not run.is_over:
        run.clock.step()
        yield run.clock.now


def assert_blocks_add_up(replica: Replica) -> None:
    cache = replica.cache
    assert cache.free + len(cache.idle) + len(cache.shared) + cache.private == cache.total
    assert min(cache.free, cache.private) >= 0
    assert 0.0 <= replica.kv_usage <= 1.0


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_every_request_ends_once_and_nothing_is_left_of_it(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)

    run.run()

    assert {course.outcome for course in run.courses}.isdisjoint({"open"})
    assert all(course.ended_at is not None for course in run.courses)
    assert run.flights == {}
    assert all(len(front.room) == 0 for front in run.fronts)
    assert run.router.leases_open == 0
    for replica in run.replicas.values():
        assert replica.running == len(replica.waiting) == len(replica.pulling) == 0


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_held_prompts_are_dropped_in_the_end(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)
    run.run()

    run.advance(run.clock.now + 60.0)

    for replica in run.replicas.values():
        assert not replica.held
        assert replica.cache.private == len(replica.cache.shared) == 0


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_blocks_add_up_after_every_event(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)

    for _ in steps_of(run):
        for replica in run.replicas.values():
            assert_blocks_add_up(replica)


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_time_never_goes_back(scenario: Scenario, seed: int) -> None:
    times = list(steps_of(Simulation(scenario, seed=seed)))

    assert times == sorted(times)


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_nothing_comes_before_its_cause(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)
    run.run()

    for course in run.courses:
        times = [course.sent_at, course.decided_at, course.first_token_at, course.ended_at]
        known = [time for time in times if time is not None]
        assert known == sorted(known)
        if course.outcome == "ok":
            assert course.first_token_at is not None
            assert course.output_tokens == course.arrival.output_tokens


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_no_answer_is_quicker_than_its_work(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)
    run.run()

    for course in run.courses:
        if course.outcome == "ok" and course.attempts == 1:
            assert course.ttft is not None
            assert course.ttft >= _least_ttft(run, course) - 1e-9
            if course.tpot is not None:
                assert course.tpot >= _profile(run, course.destination).step_seconds - 1e-9


def _profile(run: Simulation, endpoint: str | None) -> Profile:
    assert endpoint is not None
    return run.replicas[endpoint].profile


def _least_ttft(run: Simulation, course: Course) -> float:
    profile = _profile(run, course.prefill or course.destination)
    missing = course.arrival.prompt.tokens - course.cached_tokens
    least = run.around.router_seconds_per_request + profile.request_overhead_seconds
    least += profile.prefill_seconds(missing, course.cached_tokens) + profile.step_seconds
    if course.prefill is not None:
        least += _profile(run, course.destination).request_overhead_seconds
    return float(least)


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_the_time_of_every_replica_is_accounted_for(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)

    for now in steps_of(run):
        for spent in run.spent().values():
            parts = (spent.prefill, spent.decode, spent.idle, spent.down)
            assert min(parts) >= 0.0
            assert sum(parts) == pytest.approx(now, abs=1e-6)


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_equal_seeds_give_equal_bytes(scenario: Scenario, seed: int) -> None:
    first, second = Simulation(scenario, seed=seed), Simulation(scenario, seed=seed)
    first.run()
    second.run()

    assert digest(first) == digest(second)


SCRIPT = """
from tests.routing.simulator.test_simulation import busy
from tests.routing.simulator.small import digest
run = busy()
run.run()
print(digest(run))
"""


def busy() -> Simulation:
    fleet = fleet_of(member(H100, 2, kv_tokens=6_000), member(MI325X, 2))
    requests = [arrival(f"p{turn % 7}", at=0.02 * turn, output=50) for turn in range(120)]
    return simulation(fleet, *requests, has_events=True)


def test_the_seed_of_pythons_hashes_does_not_matter() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(outputs) == 1


def test_a_piece_by_piece_run_is_the_same_run() -> None:
    whole, pieces = busy(), busy()
    whole.run()

    while not pieces.is_over:
        pieces.advance(pieces.clock.now + 0.1)

    assert digest(whole) == digest(pieces)


@RANDOM_RUNS
@given(scenarios(), SEEDS)
def test_no_reading_is_of_the_future(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)
    delay = run.around.scrape_delay_seconds
    told: list[tuple[float, str, EngineSignals]] = []
    states: dict[str, list[tuple[float, int, int]]] = {name: [] for name in run.replicas}
    observe = run.router.observe

    def listen(endpoint: str, signals: EngineSignals, *, now: float) -> None:
        told.append((now, endpoint, signals))
        observe(endpoint, signals, now=now)

    with patch.object(run.router, "observe", listen):
        for now in steps_of(run):
            for name, replica in run.replicas.items():
                waiting = len(replica.waiting) + len(replica.pulling)
                states[name].append((now, replica.running, waiting))

    for now, endpoint, signals in told:
        past = [state for state in states[endpoint] if state[0] <= now - delay + 1e-9]
        taken = now - delay
        at_that_time = [state[1:] for state in past if state[0] >= taken - 1e-9] + [past[-1][1:]]
        before = [state[1:] for state in past if state[0] < taken - 1e-9][-1:]
        assert (signals.running, signals.waiting) in at_that_time + (before or [(0, 0)])


@RANDOM_RUNS
@given(scenarios().filter(lambda scenario: scenario.surroundings.has_events), SEEDS)
def test_no_cache_event_is_of_the_future(scenario: Scenario, seed: int) -> None:
    run = Simulation(scenario, seed=seed)
    delay, events = run.around.event_delay_seconds, run.router.caches.events
    first_seen: dict[int, float] = {}
    take = events.take_keys

    def listen(instance: Instance, *, stored: list[int], removed: list[int], now: float) -> None:
        assert all(first_seen[key] <= now - delay + 1e-9 for key in (*stored, *removed))
        take(instance, stored=stored, removed=removed, now=now)

    with patch.object(events, "take_keys", listen):
        for now in steps_of(run):
            for replica in run.replicas.values():
                for key in (*replica.cache.stored, *replica.cache.removed):
                    first_seen.setdefault(key, now)


def test_a_run_can_be_stopped() -> None:
    run = busy()

    run.run(should_stop=lambda: True)

    assert not run.is_over


def test_a_client_goes_on_after_its_answer() -> None:
    second = arrival("b")
    first = arrival("a", then=second, pause_seconds=5.0)
    run = simulation(fleet_of(member(H100, 1)), first)

    run.run()

    one, two = run.courses
    assert two.sent_at == one.ended_at + 5.0


def test_after_a_failure_only_clients_that_keep_going_go_on() -> None:
    def sent(*, goes_on: bool) -> int:
        first = arrival("a", output=5000, then=arrival("b", output=2), goes_on=goes_on)
        run = simulation(fleet_of(member(H100, 1)), first, timeout_seconds=1.0)
        run.run()
        return len(run.courses)

    assert (sent(goes_on=True), sent(goes_on=False)) == (2, 1)


def test_blocks_of_another_size_are_refused() -> None:
    odd = Arrival(at=0.0, prompt=Prompt((), 10, block_tokens=512), output_tokens=1)

    with pytest.raises(ValueError, match="Build the fleet with `block_tokens`"):
        simulation(fleet_of(member(H100, 1)), odd).run()


def test_a_router_that_starts_anew_cuts_its_streams_and_learns_again() -> None:
    fleet = fleet_of(member(H100, 2))
    requests = [arrival("a", at=0.5 * turn, output=100) for turn in range(8)]
    run = simulation(
        fleet, *requests, troubles=(Trouble(at=2.05, kind="restart-router"),), has_events=True
    )

    run.run()

    ends = [course.outcome for course in run.courses]
    assert "failed" in ends[:5]
    assert ends[5:] == ["ok"] * 3
    assert run.courses[-1].cached_tokens > 0
