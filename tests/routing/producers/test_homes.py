"""Which prefixes are found to be hot, with bounded memory."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from routing.producers.homes import AVERAGE_SECONDS, DEPTHS, MAX_GROUPS, GroupTable


def keys(*parts: tuple[str, int]) -> list[int]:
    """Block keys of a prompt made of named parts; each key stands for everything before it."""
    found, chain = [], ""
    for name, blocks in parts:
        for block in range(blocks):
            chain = f"{chain}/{name}.{block}"
            found.append(hash(chain) & (2**63 - 1))
    return found


def prompts(group: int, question: int) -> list[int]:
    return keys(("preamble", 10), (f"group{group}", 60), (f"question{question}", 20))


def test_a_prompt_that_came_once_belongs_to_no_group() -> None:
    table = GroupTable()

    table.observe(prompts(1, 1), tokens=100, now=0.0)

    assert table.find(prompts(1, 1)) is None
    assert len(table) == 1


def test_what_all_share_gives_way_to_what_one_endpoint_can_carry() -> None:
    table = GroupTable()
    for turn in range(400):
        table.observe(prompts(turn % 40, turn), tokens=100, now=turn * 0.01)
    table.refresh(endpoints=8, tokens_per_request=100, now=4.0)

    groups = [table.find(prompts(group, 10_000)) for group in range(40)]

    assert None not in groups
    # The preamble of 10 blocks would be everything; the first depth that tells them apart is 16.
    assert {group.depth for group in groups if group} == {16}
    assert len({group.key for group in groups if group}) == 40


def test_the_deepest_group_stays_when_it_is_too_hot_for_one() -> None:
    table = GroupTable()
    for turn in range(200):
        table.observe(prompts(0, turn), tokens=100, now=turn * 0.01)
    table.refresh(endpoints=8, tokens_per_request=100, now=2.0)

    group = table.find(prompts(0, 10_000))

    assert group is not None
    assert group.is_too_hot
    assert group.depth == 64


def test_prompts_too_short_for_any_depth_have_no_group() -> None:
    table = GroupTable()

    for _ in range(5):
        assert table.observe(keys(("tiny", DEPTHS[0] - 1)), tokens=100, now=0.0) is None

    assert len(table) == 0


def test_a_group_that_does_not_come_back_is_forgotten() -> None:
    table = GroupTable()
    for _ in range(3):
        table.observe(prompts(0, 0), tokens=100, now=0.0)
    later = 10 * AVERAGE_SECONDS
    for _ in range(3):
        table.observe(prompts(1, 0), tokens=100, now=later)

    table.refresh(endpoints=8, tokens_per_request=100, now=later)

    assert table.find(prompts(0, 0)) is None or table.find(prompts(0, 0)).depth == 8  # type: ignore[union-attr]
    assert table.find(prompts(1, 0)) is not None


def test_shares_are_what_groups_carried_lately() -> None:
    table = GroupTable()
    for turn in range(400):
        table.observe(prompts(turn % 4, turn), tokens=100, now=turn * 0.01)
        if turn == 100:
            table.refresh(endpoints=4, tokens_per_request=100, now=turn * 0.01)
    table.refresh(endpoints=4, tokens_per_request=100, now=4.0)

    shares = [table.share(group) for group in table if group.carried > 0]

    assert sum(shares) <= 1.0 + 1e-9
    assert max(shares) < 0.6


def test_counts_survive_a_very_long_time() -> None:
    table = GroupTable()

    for day in range(40):
        for _ in range(3):
            table.observe(prompts(0, 0), tokens=100, now=day * 86_400.0)
        table.refresh(endpoints=2, tokens_per_request=100, now=day * 86_400.0)

    group = table.find(prompts(0, 0))
    assert group is not None
    assert 0 < table.share(group) <= 1.0


@pytest.mark.lesson("W27")
def test_a_flood_of_prompts_that_share_nothing_stays_within_its_bound() -> None:
    table = GroupTable()

    for turn in range(2 * MAX_GROUPS):
        table.observe(keys((f"u{turn}", 8)), tokens=100, now=turn * 1e-4)

    assert len(table) <= MAX_GROUPS


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.floats(0, 300), st.booleans()),
        max_size=60,
    )
)
def test_whatever_comes_loads_stay_finite_and_carried_never_exceeds_the_load(
    events: list[tuple[int, int, float, bool]],
) -> None:
    table, now = GroupTable(), 0.0

    for group, question, pause, refreshes in events:
        now += pause
        table.observe(prompts(group, question), tokens=50, now=now)
        if refreshes:
            table.refresh(endpoints=3, tokens_per_request=50, now=now)

    for found in table:
        assert 0 <= found.carried <= found.load * (1 + 1e-9)
        assert found.load <= table.total * (1 + 1e-9)
