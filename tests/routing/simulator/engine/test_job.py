"""Keys of a job's blocks, those of its answer included."""

from routing.simulator.engine.job import Job


def job(number: int, *answer: int) -> Job:
    return Job(number=number, keys=[1, 2], prompt_tokens=40, output_tokens=90, answer_keys=answer)


def test_blocks_of_an_answer_have_the_keys_that_a_later_prompt_has() -> None:
    assert job(7, 30, 31).keys_up_to(4) == [1, 2, 30, 31]


def test_blocks_that_nobody_asks_for_again_are_of_this_job_only() -> None:
    first, second = job(7, 30).keys_up_to(5), job(8, 30).keys_up_to(5)

    assert first[:3] == second[:3]
    assert not set(first[3:]) & set(second[3:])
    assert len(set(first)) == 5


def test_the_same_answer_has_the_same_keys_again() -> None:
    one = job(7)

    assert one.keys_up_to(4) == one.keys_up_to(5)[:4]
    assert job(7).keys_up_to(5) == one.keys


def test_after_a_preemption_the_answer_is_computed_again() -> None:
    one = job(7)
    one.made = 12

    assert one.target == 52
