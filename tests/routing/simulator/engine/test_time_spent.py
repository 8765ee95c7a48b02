"""The time of one replica."""

from routing.simulator.engine.time_spent import Spent, TimeSpent


def test_time_is_prompts_answers_idleness_and_death() -> None:
    time = TimeSpent()
    time.book(4.0, 0.25)
    time.down(10.0)
    time.up(13.0)

    spent = time.spent(20.0, unbooked=2.0, prefill_share=0.5)

    assert spent == Spent(prefill=2.0, decode=4.0, idle=11.0, down=3.0)


def test_a_process_that_is_down_is_down_until_now() -> None:
    time = TimeSpent()
    time.down(5.0)

    assert time.spent(8.0, unbooked=0.0, prefill_share=0.0).down == 3.0
