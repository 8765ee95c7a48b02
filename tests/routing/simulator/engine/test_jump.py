"""Steps taken at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.engine.jump import Jump

JUMPS = st.builds(
    Jump,
    version=st.just(1),
    began=st.floats(0, 1e4),
    steps=st.integers(1, 5000),
    first=st.floats(1e-3, 0.5),
    growth=st.floats(0, 1e-4),
    prefill_share=st.just(0.0),
    reserved=st.just(0),
)


@given(JUMPS, st.floats(0, 1))
def test_steps_over_at_a_moment_are_those_whose_time_has_passed(jump: Jump, share: float) -> None:
    steps = round(share * jump.steps)

    between = jump.began + (jump.seconds(steps) + jump.seconds(steps + 1)) / 2

    assert jump.steps_at(between) == min(steps, jump.steps)
    assert jump.steps_begun(between) == min(steps + 1, jump.steps)


@given(JUMPS)
def test_all_steps_are_over_at_the_end_and_none_at_the_beginning(jump: Jump) -> None:
    assert jump.steps_at(jump.began) == 0
    assert jump.steps_at(jump.ends + jump.first / 2) == jump.steps


def test_each_step_takes_so_much_longer_than_the_one_before() -> None:
    jump = Jump(1, 0.0, 10, 1.0, 0.5, 0.0, 0)

    assert [jump.seconds(steps) for steps in range(4)] == pytest.approx([0.0, 1.0, 2.5, 4.5])
