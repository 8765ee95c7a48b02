"""Every note can be told in both languages."""

import string

import pytest

from routing.simulator import notes
from routing.simulator.notes import Note, told


@pytest.mark.parametrize("key", notes._SENTENCES)
def test_both_languages_fill_the_same_gaps(key: str) -> None:
    english, korean = (
        {name for _, name, _, _ in string.Formatter().parse(sentence) if name}
        for sentence in notes._SENTENCES[key]
    )

    assert english == korean
    assert told(Note(key, dict.fromkeys(english, 3)), "ko") != told(
        Note(key, dict.fromkeys(english, 3)), "en"
    )
