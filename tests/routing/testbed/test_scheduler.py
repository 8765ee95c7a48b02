"""The engine model in virtual time: caching, queueing, eviction, preemption, conservation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.testbed.scheduler import EngineModel, run_until_idle
from routing.testbed.sequence import RemoteKv, Sequence, State
from tests.routing.testbed.helpers import make_model, make_sequence

REMOTE = RemoteKv(engine_id="p", request_id="r", host="127.0.0.1", port=1, tokens=1000)


def ttft(sequence: Sequence) -> float:
    assert sequence.first is not None
    return sequence.first - sequence.arrived


def test_a_second_equal_prompt_finds_all_whole_blocks_but_the_last_token() -> None:
    model = make_model()
    first, second = make_sequence(7200), make_sequence(7200)

    for sequence in (first, second):
        model.add(sequence)
        run_until_idle(model, 0.0)

    assert first.cached == 0
    assert second.cached == 7184
    assert ttft(second) < ttft(first) / 20


def test_time_to_first_token_grows_with_the_queue() -> None:
    model = make_model(sequences=4)
    sequences = [make_sequence(2000, start=10_000 * n, output=50) for n in range(12)]
    for sequence in sequences:
        model.add(sequence)

    run_until_idle(model, 0.0)

    times = [ttft(sequence) for sequence in sequences]
    assert times == sorted(times)
    assert times[-1] > 4 * times[0]


def test_a_full_cache_evicts_the_prefix_that_was_unused_longest() -> None:
    model = make_model(blocks=3 * 64 + 8)
    prompts = [make_sequence(1024, start=10_000 * n) for n in range(4)]
    for sequence in prompts:
        model.add(sequence)
        run_until_idle(model, 0.0)

    newest, oldest = make_sequence(1024, start=30_000), make_sequence(1024, start=0)
    for sequence in (newest, oldest):
        model.add(sequence)
        run_until_idle(model, 0.0)

    assert newest.cached == 1008
    assert oldest.cached < 1008


def test_when_blocks_run_out_the_youngest_is_preempted_and_still_finishes() -> None:
    model = make_model(blocks=20, block_size=16)
    sequences = [make_sequence(100, start=1000 * n, output=150) for n in range(3)]
    for sequence in sequences:
        model.add(sequence)

    _, finished = run_until_idle(model, 0.0)

    assert {id(sequence) for sequence in finished} == {id(sequence) for sequence in sequences}
    assert model.stats.preemptions > 0
    assert sequences[0].preempted == 0
    assert all(sequence.output == 150 for sequence in sequences)
    assert model.stats.generation == 450
    assert model.stats.prompt == 300


def test_a_long_prompt_is_computed_in_chunks_while_others_go_on() -> None:
    model = make_model(batched_tokens=512)
    runs = make_sequence(100, output=40)
    model.add(runs)
    now = model.begin_step(0.0) or 0.0
    model.finish_step(now)
    long = make_sequence(4000, start=50_000, arrived=now)
    model.add(long)

    steps = 0
    while long.first is None:
        now += model.begin_step(now) or 0.0
        model.finish_step(now)
        steps += 1

    assert steps == 8
    assert runs.output == 9


def test_an_aborted_sequence_gives_its_blocks_back() -> None:
    model = make_model()
    sequence = make_sequence(1000, output=100)
    model.add(sequence)
    seconds = model.begin_step(0.0) or 0.0

    model.abort(sequence, seconds / 2)

    assert model.finish_step(seconds) == []
    assert model.running == 0
    assert model.pool.available == model.pool.total
    assert model.stats.finished["abort"] == 1


def test_held_blocks_stay_until_they_are_released_or_expire() -> None:
    model = make_model()
    pulled, forgotten = (
        make_sequence(160, name=name, output=1, hold=True, start=start)
        for name, start in (("a", 0), ("b", 5000))
    )
    for sequence in (pulled, forgotten):
        model.add(sequence)
    run_until_idle(model, 0.0)
    blocks = [model.hold(s.id, s, expires=30.0) for s in (pulled, forgotten)]
    used = model.pool.total - model.pool.available

    released = model.release("a")
    model.expire_holds(31.0)

    assert [len(ids) for ids in blocks] == [10, 10]
    assert used == 20
    assert released
    assert model.stats.expired_holds == 1
    assert not model.release("b")
    assert model.stats.late_notifications == 1
    assert model.pool.available == model.pool.total


@pytest.mark.parametrize(("outcome", "external"), [("arrived", 1000), ("lost", 0)])
def test_a_prompt_whose_kv_was_not_pulled_is_computed_locally(outcome: str, external: int) -> None:
    model = make_model()
    sequence = make_sequence(1000, output=4)
    sequence.remote = REMOTE
    model.add(sequence)

    idle = model.begin_step(0.0)
    waiting = sequence.state
    model.pull_finished(sequence, arrived=outcome == "arrived")
    run_until_idle(model, 1.0)

    assert idle is None
    assert waiting is State.PULLING
    assert sequence.external == external
    assert model.stats.external_transfer == external
    assert model.stats.prompt == 1000
    assert model.stats.failed_transfers == (0 if outcome == "arrived" else 1)
    assert sequence.output == 4


requests = st.lists(
    st.tuples(st.integers(1, 300), st.integers(1, 60), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(requests)
def test_whatever_is_asked_all_blocks_come_back_and_counters_equal_the_answers(
    asked: list[tuple[int, int, int, bool]],
) -> None:
    model = make_model(blocks=30, block_size=16, sequences=4, batched_tokens=128)
    sequences = [
        make_sequence(size, output=output, start=1000 * group) for size, output, group, _ in asked
    ]
    for sequence in sequences:
        model.add(sequence)
    now = _step(model, 0.0, times=3)
    for sequence, (*_, leaves) in zip(sequences, asked, strict=True):
        if leaves:
            model.abort(sequence, now)

    run_until_idle(model, now)

    stayed = [sequence for sequence in sequences if sequence.finish_reason == "length"]
    assert len(stayed) + model.stats.finished["abort"] == len(sequences)
    assert model.pool.available == model.pool.total
    assert model.stats.generation == sum(sequence.output for sequence in sequences)
    assert model.stats.prompt == sum(s.prompt_tokens for s in sequences if s.first is not None)
    assert not model.waiting


def _step(model: EngineModel, now: float, *, times: int) -> float:
    for _ in range(times):
        seconds = model.begin_step(now)
        if seconds is None:
            break
        now += seconds
        model.finish_step(now)
    return now
