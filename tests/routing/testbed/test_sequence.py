"""A sequence knows its own length and where its answer ends."""

from array import array
from typing import Any

import pytest

from routing.testbed import tokens as tk
from routing.testbed.sequence import Sequence
from tests.routing.testbed.helpers import make_sequence

NATURAL = tk.natural_length(make_sequence(100).prompt_key)


def ending(prompt: "array[int] | int" = 100, **limits: Any) -> Sequence:
    """A sequence of one prompt under these limits."""
    base = make_sequence(prompt)
    return Sequence(
        id="cmpl-1",
        tokens=base.tokens,
        keys=base.keys,
        root=base.root,
        salt=None,
        arrived=0.0,
        **limits,
    )


@pytest.mark.parametrize(
    ("limits", "stop_at", "reason"),
    [
        ({"ignore_eos": True, "max_output": 5000}, 5000, "length"),
        ({"max_output": 5000}, NATURAL, "stop"),
        ({"max_output": 5000, "min_output": 900}, 900, "stop"),
        ({"max_output": 10}, 10, "length"),
    ],
)
def test_an_answer_ends_by_itself_or_at_its_limit(
    limits: dict[str, Any], stop_at: int, reason: str
) -> None:
    sequence = ending(**limits)

    assert sequence.stop_at == stop_at
    assert sequence.ends_by_itself == (reason == "stop")


def test_an_emitted_token_becomes_part_of_the_sequence() -> None:
    sequence = make_sequence(10)

    sequence.emit()
    sequence.emit()

    assert sequence.prompt_tokens == 10
    assert len(sequence.tokens) == 12
    assert sequence.tokens[-1] == tk.PIECE_IDS[sequence.piece]


@pytest.mark.parametrize("taken", [0, 1, 7, NATURAL - 1])
def test_a_sequence_goes_on_where_another_one_was_cut(taken: int) -> None:
    whole = make_sequence(100)
    for _ in range(NATURAL):
        whole.emit()

    rest = ending(whole.tokens[: 100 + taken], max_output=5000)
    for _ in range(rest.stop_at):
        rest.emit()

    assert rest.tokens == whole.tokens
    assert rest.ends_by_itself
