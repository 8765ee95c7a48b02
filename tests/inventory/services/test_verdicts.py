"""Every code of a row error has a sentence that its facts fill."""

import re
import string
from pathlib import Path

import pytest
from django.utils import translation

from inventory.discovery import file_import
from inventory.discovery.file_import import RowError
from inventory.services import importing, verdicts

SOURCES = Path(file_import.__file__), Path(importing.__file__)


def codes() -> set[str]:
    """Codes that the sources give to errors of rows."""
    text = " ".join(path.read_text() for path in SOURCES)
    pattern = r'(?:RowError|_Refused)\((?:[^()"]|\([^()]*\))*(?:"[a-z_]*", )?"([a-z-]+)"[,)]'
    return set(re.findall(pattern, text))


def test_the_codes_of_the_sources_have_sentences() -> None:
    found = codes()

    assert len(found) > 20
    assert found <= set(verdicts.SENTENCES)


@pytest.mark.parametrize("code", verdicts.SENTENCES)
def test_a_sentence_is_whole(code: str) -> None:
    text = str(verdicts.SENTENCES[code])
    names = {name for _text, name, _spec, _conversion in string.Formatter().parse(text) if name}

    shown = verdicts.shown(RowError(3, "site", code, dict.fromkeys(names, "x")))

    assert shown["row"] == 3
    assert "{" not in shown["detail"]
    assert text.endswith((".", "?", "}"))


def test_the_sentence_is_in_the_language_of_the_reader() -> None:
    error = RowError(2, "site", "encoding")

    with translation.override("en"):
        assert verdicts.shown(error)["detail"].startswith("The file is not UTF-8")
