"""A model's name exchanged in requests and answers, byte by byte."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from routing.core.renaming import RenamedPieces, Renaming, with_model

NAMES = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.just("model"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.just("model"), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_only_the_bytes_of_the_name_change() -> None:
    body = b' { "stream" :true,\n "model" :\t"chat", "x": [1.50, "\\u00e9"], "x":2 }\r\n'

    assert with_model(body, "granite") == body.replace(b'"chat"', b'"granite"')


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"a","messages":[{"content":"\\"model\\":\\"a\\""}]}',
        b'{"tools":[{"model":"a"}],"model":"a"}',
        b'{"model":"first","model":"a"}',
        b'{"tools":[{"model":"a"}],"mod\\u0065l":"a"}',
        b'{"model":"first","mod\\u0065l":"a"}',
        b'{"metadata":{"of":"model"},"model":"a"}',
    ],
)
def test_every_reader_finds_the_new_name_whatever_else_is_called_model(body: bytes) -> None:
    changed = with_model(body, 'b"\\')

    assert json.loads(changed) == json.loads(body) | {"model": 'b"\\'}
    assert msgspec.json.decode(changed) == msgspec.json.decode(body) | {"model": 'b"\\'}


@given(others=st.dictionaries(st.text(max_size=6), VALUES, max_size=4), name=NAMES, new=NAMES)
def test_a_body_says_the_same_under_the_new_name(
    others: dict[str, Any], name: str, new: str
) -> None:
    body = others | {"model": name}

    assume(name != new)

    changed = with_model(json.dumps(body).encode(), new)

    assert json.loads(changed) == body | {"model": new}


@pytest.mark.parametrize("served", ["granite", "ibm/granite-4.1", 'a"b\\c', "그래니트"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_answers_tell_the_name_that_was_asked_for(served: str, *, is_ascii: bool) -> None:
    answer = {"id": "x", "model": served, "response": {"model": served}, "root": served}

    told = Renaming(served, "chat").answer(json.dumps(answer, ensure_ascii=is_ascii).encode())

    changed = answer | {"model": "chat", "response": {"model": "chat"}}
    assert told == json.dumps(changed, ensure_ascii=is_ascii).encode()


def test_text_that_looks_like_a_name_stays() -> None:
    said = {"choices": [{"delta": {"content": '"model":"granite"'}}], "model": "granite-2"}
    raw = json.dumps(said).encode()

    assert Renaming("granite", "chat").answer(raw) == raw


@given(
    cuts=st.lists(st.integers(0, 400), max_size=12),
    spaces=st.text(alphabet=" \t\n", max_size=3),
    served=st.sampled_from(["granite", 'a"b', "그래니트"]),
)
def test_pieces_cut_anywhere_say_together_what_the_whole_says(
    cuts: list[int], spaces: str, served: str
) -> None:
    name = json.dumps(served)
    event = f'data: {{"id":"\\"model","model"{spaces}:{spaces}{name},"choices":[]}}\n\n'
    whole = (event * 4 + 'data: {"mode').encode()
    renaming = Renaming(served, "chat")
    pieces, places = RenamedPieces(renaming), sorted({min(cut, len(whole)) for cut in cuts})
    parts = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]

    told = [pieces.piece(part) for part in parts] + [pieces.piece(b"", is_last=True)]

    assert b"".join(told) == renaming.answer(whole)
    assert len(told[-1]) <= renaming.longest


def test_pieces_without_a_name_are_passed_on_at_once() -> None:
    pieces = RenamedPieces(Renaming("granite", "chat"))

    assert pieces.piece(b'data: {"choices":[]}\n\n') == b'data: {"choices":[]}\n\n'


def test_a_key_that_ends_like_the_word_is_another_key() -> None:
    raw = json.dumps({'my"model': "granite", "model": "granite"}).encode()

    told = json.loads(Renaming("granite", "chat").answer(raw))

    assert told == {'my"model': "granite", "model": "chat"}
