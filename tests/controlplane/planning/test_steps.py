"""Steps from today's roles to advice: whoever has the right role keeps it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.planning.steps import ORDER, ShortageError, steps_to

ROLES = ("prefill", "decode", "both")
CARDS = [f"a{number}" for number in range(9)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, str]]:
    roles = {card: role for card in CARDS if (role := draw(st.sampled_from(["", *ROLES])))}
    left, counts = len(CARDS), {}
    for role in ROLES:
        counts[role] = draw(st.integers(0, left))
        left -= counts[role]
    return counts, roles


@given(cases())
def test_after_all_steps_the_roles_are_the_advised_ones(
    case: tuple[dict[str, int], dict[str, str]],
) -> None:
    counts, before = case
    free = frozenset(CARDS) - set(before)

    after = dict(before)
    steps = steps_to({"g": counts}, {"g": CARDS}, before, free=free)
    for step in steps:
        for card in step.accelerators:
            assert after.get(card, "") != step.role
            after[card] = step.role
    found = {role: list(after.values()).count(role) for role in ROLES}

    assert found == counts
    assert [step.role for step in steps] == [
        role for role in ORDER if role in [step.role for step in steps]
    ]
    # Nobody changes twice, and no more change than must.
    changed = [card for step in steps for card in step.accelerators]
    assert len(changed) == len(set(changed))
    kept = sum(min(counts[role], list(before.values()).count(role)) for role in ROLES)
    assert len(changed) == len(set(before) | set(changed)) - kept


def test_what_another_pool_holds_is_not_taken() -> None:
    with pytest.raises(ShortageError) as caught:
        steps_to({"g": {"both": 2}}, {"g": ["a", "b"]}, {"a": "both"}, free=frozenset())

    assert (caught.value.group, caught.value.needed, caught.value.there) == ("g", 2, 1)


def test_idle_accelerators_are_used_last() -> None:
    (step,) = steps_to(
        {"g": {"prefill": 1}}, {"g": ["idle", "busy"]}, {"busy": "decode"}, free=frozenset({"idle"})
    )

    assert step.accelerators == ("busy",)
