"""What stands around messages is learned from an engine's tokens; doubt is an error."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from tokenizers import Tokenizer

from routing.identity.conversation import Conversation, NotPlainError
from routing.identity.scaffold import (
    PROBE,
    Question,
    Scaffold,
    ScaffoldError,
    learn,
    questions,
)
from routing.testbed import tokens as testbed
from tests.routing.identity.small_tokenizers import byte_level, crossing, with_template

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)
Ask = Callable[[Question], bytes]


def engine(template: str = PLAIN, make: Callable[[], Tokenizer] = byte_level) -> Ask:
    """Answers as an engine with this template and tokenizer."""
    files = with_template(make(), template)

    def ask(question: Question) -> bytes:
        if not question.turns:
            return files.ids(question.prompt or "")
        pieces = files.of_conversation(conversation(*question.turns))
        return b"".join(piece.lead + files.ids(piece.text) for piece in pieces)

    return ask


def simulated(question: Question) -> bytes:
    """Answers as the testbed's engines."""
    if question.turns:
        return testbed.tokenize(testbed.chat_segments(question.turns)).tobytes()
    return testbed.tokenize([(question.prompt or "").encode()]).tobytes()


def conversation(*turns: tuple[str, str]) -> Conversation:
    return Conversation(messages=[{"role": role, "content": text} for role, text in turns])


def learned(ask: Ask) -> Scaffold:
    return learn([ask(question) for question in questions()])


def ids(ask: Ask, scaffold: Scaffold, *turns: tuple[str, str]) -> bytes:
    pieces = scaffold.of_conversation(conversation(*turns))
    return b"".join(
        piece.lead + (ask(Question(prompt=piece.text)) if piece.text else b"") for piece in pieces
    )


DEFAULTED = "{% if messages[0].role != 'system' %}<|im_start|>system\nBe.<|im_end|>\n{% endif %}"


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(engine(), id="plain"),
        pytest.param(engine(DEFAULTED + PLAIN), id="default-system"),
        pytest.param(engine(PLAIN.replace("m.content", "m.content | trim")), id="trims"),
        pytest.param(simulated, id="testbed"),
    ],
)
@pytest.mark.parametrize(
    "turns",
    [
        PROBE,
        PROBE[1:],
        (("user", "x" * 5000 + " and more words " * 500),),
        (("system", "a\n\n"), ("user", "b "), ("assistant", "c"), ("user", "d")),
    ],
)
def test_pieces_have_the_ids_of_the_whole_conversation(
    ask: Ask, turns: tuple[tuple[str, str], ...]
) -> None:
    assert ids(ask, learned(ask), *turns) == ask(Question(turns=turns))


def test_text_is_cut_where_the_engines_tokenizer_allows_it() -> None:
    long = ("user", "some words " * 2000)

    fine = learned(engine()).of_conversation(conversation(long))
    whole = learned(simulated).of_conversation(conversation(long))

    assert len(fine) > 5
    assert len(whole) == 2


def test_a_plain_prompt_is_framed_as_the_engine_does() -> None:
    def ask(question: Question) -> bytes:
        start = b"\1\0\0\0" if question.is_framed else b""
        return start + engine()(question)

    pieces = learned(ask).of_text("hello")

    assert pieces[0].lead == b"\1\0\0\0"
    assert "".join(piece.text for piece in pieces) == "hello"


@pytest.mark.parametrize(
    "odd",
    [
        Conversation(messages=[{"role": "user", "content": "x"}], tools=[{}]),
        Conversation(messages=[{"role": "user", "content": "x"}], options={"a": 1}),
        Conversation(messages=[{"role": "user", "content": "x"}], is_open=False),
        Conversation(messages=[{"role": "user", "content": "x", "name": "n"}]),
        conversation(("tool", "x")),
        conversation(("user", "x"), ("assistant", "y")),
        conversation(("user", " x")),
        conversation(("user", "")),
        conversation(),
    ],
)
def test_what_was_not_learned_is_not_plain(odd: Conversation) -> None:
    with pytest.raises(NotPlainError):
        learned(engine()).of_conversation(odd)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(engine("{{ messages | length }}" + PLAIN), id="looks-at-more"),
        pytest.param(engine(PLAIN.replace("m.content", "m.content | upper")), id="changes-text"),
        pytest.param(engine("constant"), id="constant"),
        pytest.param(lambda question: b"", id="silent"),
        pytest.param(lambda question: b"\1\0\0\0", id="one-token"),
    ],
)
def test_answers_that_do_not_fit_together_are_refused(ask: Ask) -> None:
    with pytest.raises(ScaffoldError):
        learned(ask)


def test_a_tokenizer_whose_tokens_cross_spaces_is_not_cut() -> None:
    ask = engine(make=crossing)

    pieces = learned(ask).of_conversation(conversation(("user", "some words " * 2000)))

    assert len(pieces) == 2


def test_questions_are_bodies_of_tokenize() -> None:
    framed, turns = Question(prompt="x", is_framed=True), Question(turns=(("user", "x"),))

    assert msgspec.json.decode(framed.body("m")) == {
        "model": "m",
        "prompt": "x",
        "add_special_tokens": True,
    }
    assert msgspec.json.decode(turns.body("m")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "add_generation_prompt": True,
    }
    assert len(set(questions())) == len(questions())
    assert np.frombuffer(engine()(framed), dtype="<u4").size == 1
