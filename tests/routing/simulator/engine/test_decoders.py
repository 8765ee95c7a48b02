"""Decoding sequences against the same thing step by step."""

from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.engine.decoders import Decoders
from routing.simulator.engine.job import Job

BLOCK = 8
SEQUENCES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 40), st.integers(2, 60)), min_size=1, max_size=6
)
"""Step in which it joins, prompt and output."""


def job(number: int, prompt: int, output: int) -> Job:
    made = Job(number=number, keys=[], prompt_tokens=prompt, output_tokens=output)
    made.computed = prompt
    made.private = -(-prompt // BLOCK)
    return made


@given(SEQUENCES)
def test_many_steps_at_once_are_as_many_single_ones(
    sequences: list[tuple[int, int, int]],
) -> None:
    decoders, blocks, allocated = Decoders(BLOCK), {}, 0
    left = sorted(enumerate(sequences), key=lambda entry: entry[1][0])
    ended = []
    while left or len(decoders):
        while left and left[0][1][0] <= decoders.step:
            number, (_, prompt, output) = left.pop(0)
            one = job(number, prompt, output)
            blocks[one] = one.private
            decoders.join(one)
        grown = decoders.blocks_needed(1)
        growing = [
            one
            for one in decoders.jobs
            if (one.prompt_tokens + decoders.made(one, 0) - 1) % BLOCK == 0
        ]
        assert grown == len(growing)
        allocated += grown
        decoders.advance(1)
        ended += decoders.take_ended()

    assert all(one.made == one.output_tokens for one in ended)
    assert sum(one.private - blocks[one] for one in ended) == allocated
    assert decoders.context == 0


@given(SEQUENCES, st.integers(1, 50))
def test_growth_of_many_steps_is_the_sum_of_single_ones(
    sequences: list[tuple[int, int, int]], steps: int
) -> None:
    decoders, single = Decoders(BLOCK), Decoders(BLOCK)
    for number, (_, prompt, _) in enumerate(sequences):
        decoders.join(job(number, prompt, 100))
        single.join(job(number, prompt, 100))

    needed = decoders.blocks_needed(steps)

    total = 0
    for _ in range(steps):
        total += single.blocks_needed(1)
        single.advance(1)
    assert needed == total


@given(SEQUENCES, st.integers(0, 40))
def test_steps_stop_where_blocks_or_the_first_answer_end(
    sequences: list[tuple[int, int, int]], free: int
) -> None:
    decoders = Decoders(BLOCK)
    for number, (_, prompt, output) in enumerate(sequences):
        decoders.join(job(number, prompt, output))
    shortest = min(output for _, _, output in sequences) - 1

    steps = decoders.steps_within(free)

    assert 1 <= steps <= shortest
    if decoders.blocks_needed(steps) > free:
        assert steps == 1
    if steps < shortest:
        assert decoders.blocks_needed(steps + 1) > free


def test_one_that_left_and_came_back_in_the_same_step_ends_once() -> None:
    decoders = Decoders(BLOCK)
    one = job(1, 10, 5)
    decoders.join(one)
    decoders.advance(1)
    decoders.part(one)
    decoders.advance(1)
    decoders.join(one)

    assert decoders.steps_within(100) == 2
    decoders.advance(2)
    assert decoders.take_ended() == [one]
    assert one.made == 5
