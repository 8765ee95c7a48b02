"""What a client sees of a sequence: text up to a stop string, whole or in parts, or a call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.testbed.api_requests import Prompt, parse_prompt
from routing.testbed.sequence import Sequence
from routing.testbed.speech import Speech
from tests.routing.testbed.helpers import make_model

SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
TOOL = {"type": "function", "function": {"name": "clock", "parameters": SCHEMA}}


def spoken(step: int = 1, **members: Any) -> tuple[str, Speech, Sequence]:
    """The visible text of a prompt, taken every `step` tokens."""
    body = {"messages": [{"role": "user", "content": "Say it."}], "max_tokens": 40} | members
    prompt: Prompt = parse_prompt(body, chat=True, context_limit=1000)
    sequence = prompt.sequence("c", block_size=16, now=0.0)
    speech, texts = Speech(prompt, sequence), []

    def listen(one: Sequence) -> None:
        if one.output % step == 0 or one.finish_reason is not None:
            texts.append(speech.news()[0])

    model = make_model()
    model.add(sequence)
    now = 0.0
    while (seconds := model.begin_step(now)) is not None:
        now += seconds
        for one in model.finish_step(now):
            listen(one)
    return "".join(texts), speech, sequence


def test_without_a_stop_everything_is_told() -> None:
    text, speech, sequence = spoken()

    assert (len(text), sequence.output, speech.finish_reason) == (160, 40, "length")
    assert speech.stop_reason is None


@given(st.integers(0, 150), st.integers(1, 12), st.integers(1, 7))
def test_a_stop_string_ends_the_text_before_it(begin: int, length: int, step: int) -> None:
    whole = spoken()[0]
    stop = whole[begin : begin + length]

    text, speech, sequence = spoken(step, stop=["never said", stop])

    assert text == whole[: whole.index(stop)]
    assert (speech.finish_reason, speech.stop_reason) == ("stop", stop)
    assert sequence.output == -(-(whole.index(stop) + len(stop)) // 4)


def test_a_stop_string_before_the_least_output_is_passed_over() -> None:
    whole = spoken()[0]

    text, _, _ = spoken(stop=whole[:3], min_tokens=5)

    assert len(text) > 12


def test_a_call_is_told_as_its_arguments() -> None:
    text, speech, _ = spoken(step=2, tools=[TOOL])

    assert text == '{"zone":"the"}'
    assert speech.call is not None
    assert (speech.call.name, speech.finish_reason) == ("clock", "tool_calls")


def test_a_call_that_the_limit_cuts_says_so() -> None:
    text, speech, _ = spoken(tools=[TOOL], max_tokens=2)

    assert (text, speech.finish_reason) == ('{"zone":', "length")


@pytest.mark.parametrize("choice", [1, 2])
def test_each_choice_has_other_words(choice: int) -> None:
    prompt = parse_prompt({"prompt": "x", "n": 3}, chat=False, context_limit=1000)

    keys = {
        prompt.sequence("c", block_size=16, now=0.0, choice=one).prompt_key for one in (0, choice)
    }

    assert len(keys) == 2
