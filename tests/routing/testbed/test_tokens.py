"""Tokens, block keys and answers follow from the text alone."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from routing.testbed import tokens as tk


@given(st.text(alphabet=st.characters(blacklist_characters="\0", codec="utf-8")))
def test_text_survives_the_way_to_tokens_and_back(text: str) -> None:
    ids = tk.tokenize([text.encode()])

    assert tk.detokenize(ids) == text


def test_a_prompt_of_28800_bytes_has_7200_tokens() -> None:
    ids = tk.tokenize([b"x" * 28_800])

    assert len(ids) == 7_200


def test_the_next_turn_of_a_chat_begins_with_the_tokens_of_the_turn_before() -> None:
    first = tk.tokenize(tk.chat_segments([("user", "hello there")]))
    answer = array("I", [tk.PIECE_IDS[tk.answer_piece(tk.prompt_key(first), n)] for n in range(9)])
    turns = [("user", "hello there"), ("assistant", tk.detokenize(answer)), ("user", "more")]

    second = tk.tokenize(tk.chat_segments(turns))

    assert second[: len(first) + len(answer)] == first + answer


@given(st.lists(st.integers(0, 2**32 - 1), max_size=200), st.integers(1, 40))
def test_block_keys_depend_on_everything_before_them(ids: list[int], block_size: int) -> None:
    tokens = array("I", ids)
    keys = tk.block_keys(tokens, block_size, tk.root_key(None))

    changed = array("I", [(number + 1) % 2**32 for number in ids[:1]] + ids[1:])
    others = tk.block_keys(changed, block_size, tk.root_key(None))

    assert len(keys) == len(ids) // block_size
    assert not set(keys) & set(others)


def test_prompts_with_different_salts_share_no_block() -> None:
    tokens = array("I", range(64))

    keys = {
        salt: set(tk.block_keys(tokens, 16, tk.root_key(salt))) for salt in (None, "ana", "ben")
    }

    assert not keys[None] & keys["ana"]
    assert not keys["ana"] & keys["ben"]


def test_every_piece_of_an_answer_has_four_bytes() -> None:
    assert {len(piece) for piece in tk.PIECES} == {tk.PIECE_BYTES}
    assert len(set(tk.PIECES)) == 128


@given(st.integers(1, 200), st.integers(0, 300))
def test_a_prompt_with_the_begin_of_its_answer_is_recognised(size: int, spoken: int) -> None:
    prompt = array("I", range(size))
    key = tk.prompt_key(prompt)
    answer = array("I", [tk.PIECE_IDS[tk.answer_piece(key, n)] for n in range(spoken)])

    assert tk.spoken_answer(prompt + answer) == (key, spoken)


def test_an_open_turn_is_followed_by_its_own_next_words() -> None:
    asked = tk.tokenize(tk.chat_segments([("user", "hello")]))
    begun = [("user", "hello"), ("assistant", " the sun")]

    open_turn = tk.tokenize(tk.chat_segments(begun, answer=False, is_open=True))

    assert open_turn == asked + tk.tokenize([b" the sun"])
