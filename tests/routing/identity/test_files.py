"""Cutting a prompt never changes its ids, whatever the tokenizer."""

import json
from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tokenizers import Tokenizer, processors

from routing.identity.conversation import Conversation, NotPlainError
from routing.identity.files import (
    FileTokenizer,
    TokenizerFiles,
    TokenizerFilesError,
    tokenizer_of,
)
from routing.identity.pieces import Piece
from tests.routing.identity.small_tokenizers import (
    CHATML,
    SPECIAL,
    SYSTEM,
    TEXT,
    byte_level,
    crossing,
    metaspace,
    with_template,
)

ALL = [byte_level, metaspace, crossing]
WORDS = st.sampled_from([*TEXT.split(" ")[:40], *SPECIAL, " ", "\n", "\n\n", "  ", "é", "e\u0301"])
TEXTS = st.lists(WORDS | st.text(max_size=4), max_size=60).map(" ".join) | st.text(max_size=80)


def ids(tokenizer: FileTokenizer, pieces: list[Piece]) -> list[int]:
    raw = b"".join(piece.lead + tokenizer.ids(piece.text) for piece in pieces)
    return np.frombuffer(raw, dtype="<u4").tolist()


@pytest.mark.lesson("X07")
@pytest.mark.parametrize("make", ALL)
@settings(max_examples=30)
@given(text=TEXTS)
def test_pieces_have_together_the_ids_of_the_whole(
    make: Callable[[], Tokenizer], text: str
) -> None:
    tokenizer = with_template(make())
    text = text + SYSTEM + text

    assert ids(tokenizer, tokenizer.cutter.pieces(text)) == make().encode(text).ids


@pytest.mark.parametrize(("make", "is_cut"), [(byte_level, True), (crossing, False)])
def test_text_is_cut_only_where_tokens_cannot_reach_across(
    make: Callable[[], Tokenizer], *, is_cut: bool
) -> None:
    pieces = with_template(make()).cutter.pieces(SYSTEM)

    assert (len(pieces) > 2) is is_cut
    assert "".join(piece.text for piece in pieces) == SYSTEM


def test_prompts_with_a_common_beginning_have_common_pieces() -> None:
    cutter = with_template(byte_level()).cutter

    one, other = cutter.pieces(SYSTEM + "a tail of one"), cutter.pieces(SYSTEM + "another tail")

    assert one[:-1] == other[:-1]
    assert one[-1] != other[-1]


@pytest.mark.lesson("X07")
def test_a_conversation_is_rendered_before_it_is_cut() -> None:
    tokenizer = with_template(byte_level())
    messages = [{"role": "system", "content": " brief \n"}, {"role": "user", "content": "Who?"}]

    pieces = tokenizer.of_conversation(Conversation(messages=messages))

    rendered = (
        "<|im_start|>system\nbrief<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert ids(tokenizer, pieces) == byte_level().encode(rendered).ids


def test_a_plain_prompt_gets_what_the_tokenizer_adds() -> None:
    plain = Tokenizer.from_str(byte_level().to_str())
    start = plain.token_to_id(SPECIAL[0])
    plain.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL[0]} $A {SPECIAL[1]}",
        special_tokens=[(name, plain.token_to_id(name)) for name in SPECIAL[:2]],
    )
    tokenizer = with_template(plain)

    for text in ("hello", "", SYSTEM, SPECIAL[2] + "x"):
        found = ids(tokenizer, tokenizer.of_text(text))
        assert found == plain.encode(text).ids
        assert found[0] == start


def test_conversations_need_a_template() -> None:
    files = TokenizerFiles(tokenizer=byte_level().to_str().encode())
    tokenizer = tokenizer_of(files, now=str)

    with pytest.raises(NotPlainError):
        tokenizer.of_conversation(Conversation(messages=[]))


def test_templates_and_names_come_from_the_settings() -> None:
    settings = {
        "chat_template": [
            {"name": "default", "template": "{{ bos_token }}d"},
            {"name": "tool_use", "template": "{{ eos_token }}t"},
        ],
        "bos_token": "<|im_start|>",
        "eos_token": {"content": "<|im_end|>"},
    }
    tokenizer = tokenizer_of(
        TokenizerFiles(
            tokenizer=byte_level().to_str().encode(), settings=json.dumps(settings).encode()
        ),
        now=str,
    )

    for tools, text in ((None, "<|im_start|>d"), ([{}], "<|im_end|>t")):
        pieces = tokenizer.of_conversation(Conversation(messages=[], tools=tools))
        assert ids(tokenizer, pieces) == byte_level().encode(text).ids


@pytest.mark.parametrize(
    "files",
    [
        TokenizerFiles(tokenizer=b"no json"),
        TokenizerFiles(tokenizer=b"{}"),
        TokenizerFiles(tokenizer=byte_level().to_str().encode(), template=b"{% if %}"),
        TokenizerFiles(tokenizer=byte_level().to_str().encode(), template=b"\xff"),
        TokenizerFiles(tokenizer=byte_level().to_str().encode(), settings=b"[]"),
    ],
)
def test_unusable_files_are_named(files: TokenizerFiles) -> None:
    with pytest.raises(TokenizerFilesError):
        tokenizer_of(files, now=str)


def test_the_template_of_the_tests_is_ordinary() -> None:
    assert "add_generation_prompt" in CHATML
