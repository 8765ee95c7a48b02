"""Enumerated splits: every engine once, both ends of a pair, always the same order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from routing.planner.placement import Share, can_answer, is_split
from routing.planner.splits import all_both, splits_of

PLACEMENTS = st.lists(st.integers(1, 9), min_size=1, max_size=5).map(
    lambda counts: tuple(
        Share(group=f"g{number}", width=1, both=count) for number, count in enumerate(counts)
    )
)


@settings(deadline=None, max_examples=30)
@given(PLACEMENTS)
def test_every_split_uses_all_engines_and_can_answer(placement: tuple[Share, ...]) -> None:
    for split in splits_of(placement):
        assert [share.engines for share in split] == [share.engines for share in placement]
        assert is_split(split)
        assert can_answer(split)
        assert any(share.prefill for share in split)
        assert any(share.decode for share in split)


@settings(deadline=None, max_examples=30)
@given(PLACEMENTS)
def test_no_split_comes_twice_but_where_one_group_is_divided(
    placement: tuple[Share, ...],
) -> None:
    found = list(splits_of(placement))

    if len(placement) <= 4:
        assert len(found) == len(set(found))
    assert found == list(splits_of(placement))


def test_one_engine_cannot_be_split() -> None:
    assert list(splits_of((Share(group="a", width=1, both=1),))) == []


def test_many_groups_stay_countable() -> None:
    placement = tuple(Share(group=f"g{number}", width=1, both=8) for number in range(12))

    assert sum(1 for _ in splits_of(placement)) < 20_000


def test_all_both_gives_every_engine_both_phases() -> None:
    placement = (Share(group="a", width=2, prefill=1, decode=2),)

    assert all_both(placement) == (Share(group="a", width=2, both=3),)
