"""Gaps, new lives, replays and silence of one publisher."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from routing.producers.event_health import (
    HALF_LIFE_SECONDS,
    REPLAY_PATIENCE_SECONDS,
    SILENT_AFTER_PROMPTS,
    SILENT_AFTER_SECONDS,
    Action,
    EventHealth,
)


def live(*, can_replay: bool = False, last: int = 5) -> EventHealth:
    """A publisher whose batches 0 to `last` were applied."""
    health = EventHealth(can_replay=can_replay)
    for sequence in range(last + 1):
        assert health.on_batch(sequence, now=0.0) == ("apply",)
    assert health.state == "live"
    return health


def replayed(
    health: EventHealth, sequence: int, *, now: float, sent_at: float = 0.0
) -> tuple[Action, ...]:
    return health.on_replayed(sequence, now=now, sent_at=lambda: sent_at)


@pytest.mark.parametrize(("first", "state"), [(0, "live"), (1, "partial")])
def test_counting_starts_at_zero_or_one(first: int, state: str) -> None:
    health = EventHealth(can_replay=False)

    assert health.on_batch(first, now=0.0) == ("apply",)

    assert (health.state, health.trust(now=0.0), health.counts.total()) == (state, 1.0, 0)


def test_whoever_comes_late_knows_a_part_only() -> None:
    health = EventHealth(can_replay=False)

    assert health.on_batch(40, now=0.0) == ("apply",)

    assert (health.state, health.trust(now=0.0)) == ("partial", 1.0)


def test_whoever_comes_late_asks_for_the_beginning() -> None:
    health = EventHealth(can_replay=True)

    assert health.on_batch(2, now=0.0) == ("replay",)
    assert health.replay_from == 0
    assert [replayed(health, n, now=0.1) for n in range(3)] == [("apply",)] * 3
    health.on_replay_end(now=0.2)

    assert health.on_batch(2, now=0.3, has_waited=True) == ("drop",)
    assert health.on_batch(3, now=0.3) == ("apply",)
    assert health.is_exact


def test_a_replay_that_does_not_reach_back_leaves_a_part() -> None:
    health = EventHealth(can_replay=True)
    assert health.on_connect(now=0.0)
    for sequence in range(500, 510):
        assert replayed(health, sequence, now=0.1) == ("apply",)

    health.on_replay_end(now=0.2)

    assert health.state == "partial"
    assert health.counts["replay-incomplete"] == 1
    assert health.on_batch(510, now=0.3) == ("apply",)


def test_an_engine_that_never_published_is_known_to_hold_nothing() -> None:
    health = EventHealth(can_replay=True)
    health.on_connect(now=0.0)

    health.on_replay_end(now=0.1)

    assert health.is_exact
    assert health.on_batch(0, now=5.0) == ("apply",)
    assert health.is_exact


def test_a_gap_is_filled_by_a_replay_while_live_batches_wait() -> None:
    health = live(can_replay=True)

    assert health.on_batch(9, now=1.0) == ("replay",)
    assert health.replay_from == 6
    assert health.on_batch(10, now=1.1) == ("wait",)
    found = [replayed(health, sequence, now=1.2) for sequence in range(4, 11)]
    health.on_replay_end(now=1.3)

    assert found == [("drop",)] * 2 + [("apply",)] * 5
    assert health.on_batch(9, now=1.4, has_waited=True) == ("drop",)
    assert health.on_batch(10, now=1.4, has_waited=True) == ("drop",)
    assert health.on_batch(11, now=1.5) == ("apply",)
    assert health.is_exact
    assert health.counts["gap"] == 1


@pytest.mark.lesson("X04")
def test_a_gap_beyond_the_replays_memory_makes_trust_fade() -> None:
    health = live(can_replay=True)
    health.on_batch(900, now=1.0)
    for sequence in range(500, 901):
        replayed(health, sequence, now=1.1)

    health.on_replay_end(now=2.0)

    assert health.state == "doubtful"
    assert health.trust(now=2.0) == 0.5
    assert health.trust(now=2.0 + HALF_LIFE_SECONDS) == 0.25
    assert health.is_spent(now=2.0 + 3 * HALF_LIFE_SECONDS)
    health.on_dropped()
    assert (health.state, health.trust(now=900.0)) == ("partial", 1.0)


def test_a_connection_that_was_away_is_made_good() -> None:
    health = live(can_replay=True)
    health.last_sent_at = 100.0

    assert health.on_connect(now=1.0)
    actions = [replayed(health, n, now=1.1, sent_at=95.0 + n) for n in range(8)]
    health.on_replay_end(now=1.2)

    assert actions == [("drop",)] * 6 + [("apply",)] * 2
    assert health.is_exact
    assert health.on_batch(8, now=1.3) == ("apply",)


@pytest.mark.lesson("X03")
def test_a_connection_to_another_life_starts_with_an_empty_cache() -> None:
    health = live(can_replay=True)
    health.last_sent_at = 100.0

    assert health.on_connect(now=1.0)
    actions = [replayed(health, n, now=1.1, sent_at=200.0 + n) for n in range(2)]
    health.on_replay_end(now=1.2)

    assert actions == [("clear", "apply"), ("apply",)]
    assert health.is_exact
    assert health.counts["rollback"] == 1


@pytest.mark.lesson("X03")
def test_a_connection_to_a_life_without_events_empties_the_cache_at_once() -> None:
    health = live(can_replay=True)

    assert health.on_connect(now=1.0)

    assert health.on_replay_end(now=1.2) == ("clear",)
    assert health.is_exact
    assert health.on_batch(0, now=2.0) == ("apply",)


def test_a_connection_that_was_away_is_doubted_where_nothing_is_replayed() -> None:
    health = live()

    assert not health.on_connect(now=1.0)

    assert (health.state, health.counts["disconnected"]) == ("doubtful", 1)


def test_without_replay_a_gap_is_doubted_and_events_go_on() -> None:
    health = live()

    assert health.on_batch(8, now=1.0) == ("apply",)
    assert health.on_batch(9, now=1.1) == ("apply",)

    assert (health.state, health.counts["gap"]) == ("doubtful", 1)


def test_an_unanswered_replay_ends_and_what_waited_is_taken() -> None:
    health = live(can_replay=True)
    health.on_batch(8, now=1.0)
    assert not health.is_late(now=1.0 + REPLAY_PATIENCE_SECONDS)
    assert health.is_late(now=1.1 + REPLAY_PATIENCE_SECONDS)

    health.on_replay_end(now=7.0, is_answered=False)

    assert health.state == "doubtful"
    assert health.counts["replay-unanswered"] == 1


@pytest.mark.lesson("X05")
@pytest.mark.parametrize("can_replay", [True, False])
def test_a_smaller_number_is_a_new_life_and_its_events_are_taken(*, can_replay: bool) -> None:
    health = live(can_replay=can_replay, last=90)

    assert health.on_batch(0, now=1.0) == ("clear", "apply")
    assert health.on_batch(1, now=1.0) == ("apply",)

    assert health.is_exact
    assert health.counts["rollback"] == 1


@pytest.mark.lesson("X05")
def test_a_new_life_whose_beginning_was_missed_is_asked_for_it() -> None:
    health = live(can_replay=True, last=90)

    assert health.on_batch(4, now=1.0) == ("clear", "replay")

    assert health.replay_from == 0
    for sequence in range(5):
        assert replayed(health, sequence, now=1.1) == ("apply",)
    health.on_replay_end(now=1.2)
    assert health.is_exact


@pytest.mark.lesson("X05")
def test_a_new_life_without_replay_is_known_in_part() -> None:
    health = live(last=90)

    assert health.on_batch(4, now=1.0) == ("clear", "apply")

    assert health.state == "partial"


def test_a_new_life_during_a_replay_ends_it() -> None:
    health = live(can_replay=True, last=90)
    health.on_batch(95, now=1.0)

    assert health.on_batch(0, now=1.1) == ("clear", "apply")

    assert replayed(health, 91, now=1.2) == ("drop",)
    assert health.is_exact


def test_the_same_batch_twice_is_taken_once() -> None:
    assert live().on_batch(5, now=1.0) == ("drop",)


def test_what_cannot_be_read_is_doubted() -> None:
    health = live()

    health.trouble("undecodable", now=3.0)
    health.trouble("undecodable", now=60.0)

    assert health.counts["undecodable"] == 2
    assert health.doubtful_since == 3.0
    assert not health.is_exact


def test_an_emptied_cache_ends_every_doubt() -> None:
    health = live()
    health.trouble("undecodable", now=3.0)

    health.on_cleared()

    assert health.is_exact


@pytest.mark.lesson("X03")
def test_silence_while_prompts_are_answered_is_trouble() -> None:
    health = live()
    for turn in range(SILENT_AFTER_PROMPTS - 1):
        health.on_prompt(now=10.0 + turn)
    assert health.is_exact

    health.on_prompt(now=10.0 + SILENT_AFTER_SECONDS + 1)

    assert (health.state, health.counts["silence"]) == ("doubtful", 1)


def test_silence_without_traffic_is_no_trouble() -> None:
    health = live()
    health.on_prompt(now=10.0)
    health.on_batch(6, now=11.0)

    health.on_prompt(now=500.0)

    assert health.is_exact


def test_many_blocks_without_a_known_parent_mean_a_part_is_missing() -> None:
    health = live()

    health.on_blocks(stored=100, orphans=10)
    assert health.is_exact
    health.on_blocks(stored=50, orphans=60)

    assert (health.state, health.counts["unknown-parent"]) == ("partial", 1)


def test_a_snapshot_would_make_everything_known() -> None:
    health = EventHealth(can_replay=True)
    health.on_batch(70, now=0.0)

    health.restored(75)

    assert health.on_batch(76, now=1.0) == ("apply",)
    assert health.is_exact


@given(
    st.lists(st.integers(0, 12), max_size=60), st.booleans(), st.lists(st.booleans(), min_size=60)
)
def test_no_order_of_numbers_and_no_holes_of_replays_break_it(
    sequences: list[int], can_replay: bool, kept: list[bool]
) -> None:
    health = EventHealth(can_replay=can_replay)

    for turn, sequence in enumerate(sequences):
        now = float(turn)
        actions = health.on_batch(sequence, now=now)
        for _ in range(3):
            if "replay" not in actions:
                break
            for number in range(health.replay_from, sequence + 1):
                if kept[number + turn % 7]:
                    replayed(health, number, now=now)
            health.on_replay_end(now=now, is_answered=kept[turn])
            actions = health.on_batch(sequence, now=now, has_waited=True)
        assert actions[-1] in ("apply", "drop")
        assert health.last_sequence == sequence
        assert 0 < health.trust(now=now) <= 1
