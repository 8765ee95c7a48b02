"""Words in two languages."""

import re

import pytest

from routing.simulator.report.messages import _WORDS, say


@pytest.mark.parametrize("key", _WORDS)
def test_both_languages_name_the_same_things(key: str) -> None:
    english, korean = _WORDS[key]

    assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", korean))
    assert re.search("[가-힣]", korean)


def test_names_are_filled_in() -> None:
    assert say("throughput", "en") == "Throughput"
    assert say("replicas-of", "en", policy="random") == "Endpoints in the last stage: random"


def test_a_sentence_that_nobody_wrote_raises() -> None:
    with pytest.raises(KeyError):
        say("poetry", "en")
