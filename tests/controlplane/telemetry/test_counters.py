"""What counters grew by is never negative and never lost."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.telemetry.counters import growth, was_restarted

STEPS = st.lists(st.integers(0, 10**6), min_size=1, max_size=20)


@given(st.lists(STEPS, min_size=1, max_size=5))
def test_growth_over_restarts_sums_to_all_that_was_counted(lives: list[list[int]]) -> None:
    before, total = None, 0

    for life, steps in enumerate(lives):
        shown = 0
        for position, step in enumerate(steps):
            shown += step
            grown = growth(
                before,
                {"tokens": shown},
                restarted=life > 0 and position == 0,
                from_start=True,
            )
            assert (grown["tokens"] or 0) >= 0
            total += int(grown["tokens"] or 0)
            before = {"tokens": shown}

    assert total == sum(sum(steps) for steps in lives)


def test_a_smaller_counter_began_again_at_zero() -> None:
    grown = growth({"tokens": 100}, {"tokens": 30}, restarted=False, from_start=True)

    assert grown == {"tokens": 30}


def test_a_strangers_total_at_the_first_reading_is_not_ours() -> None:
    after = {"tokens": 5000, "missing": None}

    assert growth(None, after, restarted=False, from_start=False) == {"tokens": 0, "missing": None}
    assert growth(None, after, restarted=False, from_start=True) == after


def test_a_counter_that_is_gone_is_unknown_and_not_zero() -> None:
    assert growth({"tokens": 5}, {"tokens": None}, restarted=False, from_start=True) == {
        "tokens": None
    }


def test_a_restart_shows_in_the_process_start() -> None:
    assert was_restarted(100.0, 160.0)
    assert not was_restarted(100.0, 100.4)
    assert not was_restarted(None, 100.0)
