"""Ways to give the engines of one pool their roles."""

from collections.abc import Iterator, Sequence
from itertools import product

from routing.planner.placement import Placement, Share, can_answer, is_split

QUARTERS = (1, 2, 3)
MOST_VARIED = 4
"""Groups whose engines are divided between prefill and decode as well; with more groups only one of
them is divided at a time, so that the count stays in the thousands."""
MOST_GROUPS = 7
"""Further groups, the smallest, stay at both phases in every split."""

Counts = tuple[int, int, int]


def all_both(placement: Placement) -> Placement:
    """The same engines, each doing both phases."""
    return tuple(
        Share(group=share.group, width=share.width, both=share.engines) for share in placement
    )


def splits_of(placement: Placement) -> Iterator[Placement]:
    """Every split of a pool's engines that can answer; the order is always the same."""
    largest = sorted(range(len(placement)), key=lambda at: (-placement[at].accelerators, at))
    varied = set(largest[:MOST_GROUPS])
    choices = [
        _choices(share.engines, divides=len(varied) <= MOST_VARIED)
        if at in varied
        else [(0, 0, share.engines)]
        for at, share in enumerate(placement)
    ]
    for counts in product(*choices):
        yield from _checked(placement, counts)
    if len(varied) > MOST_VARIED:
        yield from _one_divided(placement, choices, sorted(varied))


def _one_divided(
    placement: Placement, choices: Sequence[Sequence[Counts]], varied: Sequence[int]
) -> Iterator[Placement]:
    for place in varied:
        divided = [counts for counts in _choices(placement[place].engines, divides=True)
                   if counts[0] and counts[1]]  # fmt: skip
        others = [choices[at] if at != place else divided for at in range(len(placement))]
        for counts in product(*others):
            yield from _checked(placement, counts)


def _checked(placement: Placement, counts: Sequence[Counts]) -> Iterator[Placement]:
    found = tuple(
        Share(group=share.group, width=share.width, prefill=prefill, decode=decode, both=both)
        for share, (prefill, decode, both) in zip(placement, counts, strict=True)
    )
    # A pair needs both ends; a lone prefill or decode engine would do nothing.
    has_ends = any(share.prefill for share in found) and any(share.decode for share in found)
    if is_split(found) and has_ends and can_answer(found):
        yield found


def _choices(engines: int, *, divides: bool) -> list[Counts]:
    """Prefill, decode and both of so many engines."""
    found: dict[Counts, None] = {(0, 0, engines): None}
    if engines:
        found |= {(engines, 0, 0): None, (0, engines, 0): None}
    if divides:
        for quarters in QUARTERS:
            prefill = max(1, round(engines * quarters / 4))
            if prefill < engines:
                found[prefill, engines - prefill, 0] = None
    return list(found)
