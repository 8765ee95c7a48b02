"""Where a prompt is cut."""

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from routing.identity.pieces import CHUNK_CHARACTERS, Cutter, Piece

SETS = [
    ["<|im_start|>", "<|im_end|>"],
    ["<s>", "</s>", "[INST]"],
    ["<|a|>", "<|ab|>", "<|a|>b"],
    ["only"],
    [],
]


def cutter(names: list[str], **options: int) -> Cutter:
    special = {name: bytes([number, 0, 0, 0]) for number, name in enumerate(names)}
    return Cutter(special, **options)


def text_of(piece: Piece, names: list[str]) -> str:
    return "".join(names[number] for number in piece.lead[::4]) + piece.text


@pytest.mark.parametrize("names", SETS)
@given(data=st.data())
def test_pieces_are_the_whole_text_cut_at_the_longest_special_tokens(
    names: list[str], data: st.DataObject
) -> None:
    words = st.sampled_from([*names, "<", "|", "<|", "a", " ", "word word", "\n"])
    text = "".join(data.draw(st.lists(words, max_size=120)))

    pieces = cutter(names, chunk_characters=3).pieces(text)

    assert "".join(text_of(piece, names) for piece in pieces) == text
    longest = sorted(names, key=len, reverse=True)
    count = len(re.findall("|".join(map(re.escape, longest)), text)) if names else 0
    assert sum(len(piece.lead) // 4 for piece in pieces) == count


def test_a_text_full_of_the_shared_character_is_cut_all_the_same() -> None:
    names = ["<|x|>"]
    text = "| a " * 500 + "<|x|>" + "| b " * 500

    pieces = cutter(names).pieces(text)

    assert sum(len(piece.lead) for piece in pieces) == 4
    assert "".join(text_of(piece, names) for piece in pieces) == text


@given(st.text("ab \n1", max_size=100))
def test_words_keep_the_space_before_them(tail: str) -> None:
    chunks = cutter([]).chunks("word " * 2000 + tail)

    assert "".join(chunks) == "word " * 2000 + tail
    assert all(len(chunk) >= CHUNK_CHARACTERS for chunk in chunks[:-1])
    assert all(chunk[0] == " " and chunk[1].isalpha() for chunk in chunks[1:])


def test_a_text_without_borders_stays_whole() -> None:
    assert cutter([]).chunks("1" * 50_000) == ["1" * 50_000]
