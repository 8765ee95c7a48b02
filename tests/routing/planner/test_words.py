"""Every reason has a sentence in both languages, with its numbers."""

import inspect
import re
import string

import pytest

from routing.planner import engines, reasons, sharing
from routing.planner.advice import Reason
from routing.planner.words import ENGLISH, KOREAN, Language, sentence


def test_both_languages_say_the_same_with_the_same_numbers() -> None:
    assert ENGLISH.keys() == KOREAN.keys()
    for code, text in ENGLISH.items():
        ours = {name for _, name, _, _ in string.Formatter().parse(text) if name}
        theirs = {name for _, name, _, _ in string.Formatter().parse(KOREAN[code]) if name}
        assert ours == theirs, code


CODES = [
    code
    for line in inspect.getsource(reasons).splitlines() if re.search(r"\bcode ?=[^=]", line)
    for code in re.findall(r'"([a-z-]+)"(?!:)', line)
]  # fmt: skip
REFUSALS = re.findall(
    r'Refusal\(\s*"([a-z-]+)"', "".join(map(inspect.getsource, (engines, sharing)))
)
COMPOSED = [
    *(f"fit-{code}" for code in REFUSALS), "ttft-compared", "tpot-compared",
    "limited-by-prefill", "limited-by-decode",
]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_code_that_the_planner_gives_is_in_words(language: Language) -> None:
    given = {*CODES, *COMPOSED}

    assert given == ENGLISH.keys()
    for code in given:
        assert sentence(Reason(code=code), language) != code


def test_numbers_read_as_people_write_them() -> None:
    reason = Reason(
        code="do-not-split", numbers={"goodput": 11.547, "other": 22.897, "gain": -0.4957}
    )

    assert "11.5 good requests/s, -50 % against 22.9" in sentence(reason)
    assert re.search("11.5건.*-50 %", sentence(reason, "ko"))


def test_an_unknown_code_shows_itself_and_a_missing_number_is_a_question_mark() -> None:
    assert sentence(Reason(code="from-tomorrow")) == "from-tomorrow"
    assert "?" in sentence(Reason(code="pair-share"))
