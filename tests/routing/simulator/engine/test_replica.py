"""One replica: order of work, chunks, memory, preemption, speed, death."""

from dataclasses import replace
from typing import Any

import pytest

from routing.simulator.clock import Clock
from routing.simulator.engine.job import Job, State
from routing.simulator.engine.replica import Replica
from routing.simulator.profiles import load_profile
from routing.simulator.requests import prompt_of

BLOCK = 16
PROFILE = replace(load_profile("nvidia-h100-nvl", "granite-4.1-8b"), request_overhead_seconds=0.01)


class Bench:
    """A replica and what its jobs told."""

    def __init__(self, *, kv_tokens: int = 100_000, **options: Any) -> None:
        self.clock = Clock()
        changes = {"kv_tokens": kv_tokens} | options
        most = changes.pop("max_sequences", 64)
        self.replica = Replica(
            replace(PROFILE, **changes), self.clock, block_tokens=BLOCK, max_sequences=most
        )
        self.told: list[tuple[str, int, float]] = []
        self._count = 0

    def send(self, name: str, tokens: int, output: int, **options: Any) -> Job:
        """Submit now."""
        number = self._count
        self._count += 1
        job = Job(
            number=number,
            keys=list(prompt_of([(name, tokens)], block_tokens=BLOCK).keys),
            prompt_tokens=tokens,
            output_tokens=output,
            on_first=lambda now: self.told.append(("first", number, now)),
            on_end=lambda now: self.told.append(("end", number, now)),
            on_lost=lambda now: self.told.append(("lost", number, now)),
            **options,
        )
        self.replica.submit(job)
        return job

    def when(self, what: str, job: Job) -> float:
        """When a job told something; once only."""
        (found,) = [now for told, number, now in self.told if (told, number) == (what, job.number)]
        return found


def test_one_request_takes_its_prefill_and_its_steps() -> None:
    bench = Bench()
    job = bench.send("a", 1000, 3)
    bench.clock.run()

    profile = bench.replica.profile
    first = 0.01 + profile.prefill_seconds(1000, 0) + profile.decode_seconds(0, 0)
    steps = profile.decode_seconds(1, 1001) + profile.decode_seconds(1, 1002)
    assert bench.when("first", job) == pytest.approx(first)
    assert bench.when("end", job) == pytest.approx(first + steps)


def test_an_answer_of_one_token_ends_with_it() -> None:
    bench = Bench()
    job = bench.send("a", 100, 1)
    bench.clock.run()

    assert bench.when("first", job) == bench.when("end", job)


def test_a_prompt_that_is_cached_is_computed_from_its_last_block_on() -> None:
    bench = Bench()
    bench.send("a", 1600, 1)
    bench.clock.run()
    again = bench.send("a", 1600, 1)
    bench.clock.run()

    assert again.cached == 1600 - BLOCK
    assert bench.replica.hit_tokens == 1600 - BLOCK
    assert bench.replica.prompt_tokens == 3200


def test_a_long_prompt_is_computed_in_chunks_between_the_steps_of_others() -> None:
    bench = Bench(max_num_batched_tokens=512)
    short = bench.send("short", 100, 1000)
    bench.clock.run(until=1.0)
    before = bench.replica.made(short)
    long = bench.send("long", 5000, 1)
    bench.clock.step()
    while not long.made:
        bench.clock.step()

    # 511 tokens a step beside the one that decodes; some steps pass until it is in the batch.
    assert bench.replica.made(short) - before in (11, 12, 13)


def test_no_more_sequences_run_than_the_engine_takes() -> None:
    bench = Bench(max_sequences=2)
    for number in range(4):
        bench.send(f"p{number}", 100, 50)
    bench.clock.run(until=0.1)

    assert bench.replica.running == 2
    assert len(bench.replica.waiting) == 2


def test_the_youngest_leaves_when_memory_is_full_and_comes_back() -> None:
    bench = Bench(kv_tokens=1600)
    old = bench.send("a", 400, 600)
    bench.clock.run(until=0.1)
    young = bench.send("b", 400, 600)
    bench.clock.run()

    assert (old.preempted, young.preempted) == (0, 1)
    assert bench.replica.preemptions == 1
    assert bench.when("end", old) < bench.when("end", young)
    assert young.made == 600


def test_what_can_never_fit_is_lost() -> None:
    bench = Bench(kv_tokens=320)
    job = bench.send("a", 400, 10)
    bench.clock.run()

    assert bench.told == [("lost", job.number, 0.01)]


def test_an_aborted_job_frees_its_place_in_the_middle_of_a_jump() -> None:
    bench = Bench(max_sequences=1)
    job = bench.send("a", 100, 10_000)
    bench.clock.run(until=1.0)
    other = bench.send("b", 100, 5)
    bench.clock.run(until=2.0)
    bench.replica.abort(job, bench.clock.now)
    made = job.made
    bench.clock.run()

    assert 250 < made < 350
    assert bench.when("first", other) == pytest.approx(2.0, abs=0.05)
    assert bench.replica.cache.private == 0


def test_a_slow_engine_takes_longer_from_the_next_step_on() -> None:
    bench = Bench()
    job = bench.send("a", 100, 1000)
    bench.clock.run(until=1.0)
    before = bench.replica.made(job)
    bench.replica.change_speed(0.5, bench.clock.now)
    bench.clock.run(until=2.0)

    assert bench.replica.made(job) - before == pytest.approx(before / 2, rel=0.1)


def test_a_hang_ends_with_its_step_and_time_goes_on_after_it() -> None:
    bench = Bench()
    job = bench.send("a", 100, 300)
    bench.clock.run(until=1.0)
    bench.replica.change_speed(0.0, bench.clock.now)
    bench.clock.run(until=5.0)
    made = bench.replica.made(job)
    since = bench.replica.silent_since(job)
    bench.replica.change_speed(1.0, bench.clock.now)
    bench.clock.run()

    assert made < 300
    assert since == pytest.approx(1.0, abs=0.01)
    assert bench.when("end", job) > 5.0


def test_a_dead_process_loses_its_jobs_and_its_cache() -> None:
    bench = Bench(max_sequences=1)
    jobs = [bench.send("a", 100, 1000), bench.send("b", 100, 1000)]
    bench.clock.run(until=1.0)
    bench.replica.die(1.0)
    late = bench.send("c", 100, 1)
    bench.clock.run()

    assert [told for told, *_ in bench.told] == ["first", "lost", "lost", "lost"]
    assert 100 < jobs[0].made < 200
    assert late.state is State.ENDED
    assert bench.replica.cache.free == bench.replica.cache.total


def test_a_new_process_works_and_remembers_nothing() -> None:
    bench = Bench()
    bench.send("a", 160, 1)
    bench.clock.run()
    bench.replica.die(bench.clock.now)
    bench.replica.start(bench.clock.now)
    again = bench.send("a", 160, 1)
    bench.clock.run()

    assert again.cached == 0
    assert bench.when("end", again) > 0


def test_a_job_under_way_to_a_process_that_dies_is_lost_even_if_another_starts() -> None:
    bench = Bench()
    job = bench.send("a", 100, 1)
    bench.replica.die(0.0)
    bench.replica.start(0.0)
    bench.clock.run()

    assert bench.told == [("lost", job.number, 0.01)]


def test_a_held_prompt_keeps_its_blocks_until_it_is_fetched() -> None:
    bench = Bench(kv_tokens=1600)
    job = bench.send("a", 800, 1, hold=True)
    bench.clock.run(until=1.0)

    assert job.state is State.HELD
    assert bench.replica.kv_usage == pytest.approx(0.5)
    bench.replica.release(job, 1.0)
    assert bench.replica.kv_usage == 0.0


def test_a_held_prompt_expires() -> None:
    bench = Bench()
    bench.send("a", 800, 1, hold=True)
    bench.clock.run()

    assert not bench.replica.held
    assert bench.replica.expired_holds == 1
    assert 30.0 < bench.clock.now < 31.0


def test_a_pulled_prompt_waits_for_its_transfer_and_computes_one_token() -> None:
    bench = Bench()
    asked: list[float] = []
    job = bench.send("a", 1600, 2, on_admitted=asked.append)
    bench.clock.run()
    assert asked == [0.01]
    assert job.state is State.PULLING
    bench.replica.pulled(job, bench.clock.now)
    bench.clock.run()

    profile = bench.replica.profile
    step = profile.prefill_seconds(1, 1599) + profile.decode_seconds(0, 0)
    assert bench.when("first", job) == pytest.approx(0.01 + step)


def test_a_transfer_that_failed_is_computed_here() -> None:
    bench = Bench()
    job = bench.send("a", 1600, 2, on_admitted=lambda now: None)
    bench.clock.run()
    bench.replica.pulled(job, bench.clock.now, arrived=False)
    bench.clock.run()

    whole = bench.replica.profile.prefill_seconds(1600, 0)
    assert bench.when("first", job) > 0.01 + whole


def test_usage_grows_while_an_answer_grows() -> None:
    bench = Bench(kv_tokens=1600)
    bench.send("a", 160, 1000)
    bench.clock.run(until=1.0)
    early = bench.replica.kv_usage
    bench.clock.run(until=3.0)

    assert bench.replica.kv_usage > early + 0.15


def test_time_goes_to_prompts_and_answers() -> None:
    bench = Bench()
    job = bench.send("a", 4000, 200)
    bench.clock.run()
    spent = bench.replica.spent()

    first, end = bench.when("first", job), bench.when("end", job)
    assert spent.prefill == pytest.approx(first - 0.01)
    assert spent.decode == pytest.approx(end - first)
