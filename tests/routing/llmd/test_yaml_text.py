"""YAML of a stranger: bounded, without surprises."""

import pytest

from routing.core.document import DocumentError
from routing.llmd import yaml_text

BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 2)}]\n"
    for before, name in zip("abcdefghijklmnopqr", "bcdefghijklmnopqrs", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(BOMB, "20000 values", id="aliases-that-explode"),
        pytest.param("a: &a [1]\nb: [" + "*a, " * 60 + "]", "50 aliases", id="many-aliases"),
        pytest.param("[" * 60 + "]" * 60, "deeper than 40", id="deep"),
        pytest.param("a: 1\nb: 2\na: 3", "'a' stands twice, again in line 3", id="key-twice"),
        pytest.param("a: [" + "1, " * 21_000 + "]", "20000 values", id="many-values"),
        pytest.param("[" + "1, " * 41_000 + "}", "20000 values", id="not-read-to-its-end"),
        pytest.param("x: " + "y" * (1 << 20), "at most 1048576", id="long"),
        pytest.param("a: !!python/object:os.system x", "could not determine", id="tag"),
        pytest.param("a: 2026-01-01", "type date", id="date"),
        pytest.param("a: .nan", "type float", id="not-a-number"),
        pytest.param("a: " + "9" * 5000, "no YAML", id="number-of-thousands-of-digits"),
        pytest.param("1: x", "no text; quote it", id="key-that-is-no-text"),
        pytest.param("a: b: c", "no YAML", id="syntax"),
        pytest.param("--- 1\n--- 2", "no YAML", id="two-documents"),
        pytest.param("a: 2026-13-45", "no YAML", id="impossible-date"),
        pytest.param(b"\xff\xfe\x00", "no YAML", id="no-text"),
        pytest.param("? [a, b]\n: x", "no YAML", id="list-as-key"),
        pytest.param(r'a: "\ud83d"', "half a character", id="half-a-character"),
        pytest.param(r'{"\udc00": 1}', "half a character", id="half-a-character-in-a-key"),
    ],
)
def test_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        yaml_text.load(text)


def test_an_alias_that_stays_small_is_fine() -> None:
    assert yaml_text.load("a: &a {x: 1}\nb: *a") == {"a": {"x": 1}, "b": {"x": 1}}


def test_an_empty_text_is_nothing() -> None:
    assert yaml_text.load("") is None


def test_the_order_is_kept() -> None:
    assert yaml_text.dump({"b": 1, "a": [True, "2"]}) == "b: 1\na:\n- true\n- '2'\n"


def test_values_of_several_documents_are_counted_together_while_they_are_read() -> None:
    with pytest.raises(DocumentError, match="20000 values"):
        yaml_text.load_all("--- a\n" * 41_000 + "b: c: d")
