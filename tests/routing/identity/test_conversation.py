"""Every API that carries a conversation gives a chat template the same messages."""

import json
from typing import Any

import pytest

from routing.core.bodies.wire import plain_turns
from routing.core.openai import read_fields
from routing.identity.conversation import Conversation, NotPlainError, conversation_of

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
ARGUMENTS = {"zone": "Asia/Seoul"}
SCHEMA = {"type": "object"}


def read(path: str, **fields: Any) -> Conversation:
    return conversation_of(path, json.dumps({"model": "m"} | fields).encode())


@pytest.mark.lesson("X09")
def test_a_conversation_with_tools_is_the_same_over_chat_and_messages() -> None:
    call = {"name": "clock", "arguments": json.dumps(ARGUMENTS)}
    over_chat = read(
        CHAT,
        tools=[
            {
                "type": "function",
                "function": {"name": "clock", "description": "d", "parameters": SCHEMA},
            }
        ],
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "When?"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "noon"},
        ],
    )
    over_messages = read(
        MESSAGES,
        system=[{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}],
        tools=[{"name": "clock", "description": "d", "input_schema": SCHEMA}],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "When?"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "clock", "input": ARGUMENTS}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "noon"}],
            },
        ],
    )

    assert over_messages == over_chat
    assert over_chat.messages[2]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS


def test_responses_are_a_chat_too() -> None:
    item = {"role": "user", "content": [{"type": "input_text", "text": "When?"}]}
    expected = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "When?"}]

    assert read(RESPONSES, instructions="Be brief.", input="When?").messages == expected
    assert read(RESPONSES, instructions="Be brief.", input=[item]).messages == expected


def test_options_of_the_template_are_handed_on() -> None:
    found = read(
        CHAT,
        messages=[],
        chat_template_kwargs={"enable_thinking": False},
        reasoning_effort="low",
        add_generation_prompt=False,
    )

    assert found.options == {"enable_thinking": False, "reasoning_effort": "low"}
    assert not found.is_open


PICTURE = [{"type": "image_url", "image_url": {"url": "data:,x"}}]


@pytest.mark.lesson("X11")
@pytest.mark.lesson("X12")
@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        (CHAT, {"messages": [{"role": "user", "content": PICTURE}]}, "multimodal"),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "multimodal"),
        (CHAT, {"messages": [], "chat_template": "x"}, "own-template"),
        (CHAT, {"messages": [], "truncate_prompt_tokens": 5}, "own-template"),
        (CHAT, {"messages": [], "continue_final_message": True}, "continued-message"),
        (CHAT, {"messages": [{"role": "assistant", "tool_calls": ["x"]}]}, "unknown-shape"),
        (CHAT, {"messages": 5}, "unknown-shape"),
        (CHAT, {"messages": [{"role": "user", "content": ""}] * 2001}, "too-large-to-render"),
        (CHAT, {"messages": [{"role": "u", "content": "x" * 2**22}]}, "too-large-to-render"),
        (RESPONSES, {"input": "x", "previous_response_id": "r"}, "previous-response"),
        (RESPONSES, {"input": [{"type": "function_call"}]}, "responses-item"),
        ("/v1/embeddings", {"input": "x"}, "no-conversation"),
    ],
)
def test_what_is_more_than_text_says_why_it_cannot_be_told(
    path: str, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NotPlainError) as caught:
        read(path, **fields)

    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("path", "fields", "is_plain"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "x"}]}, True),
        (CHAT, {"messages": [{"role": "user", "content": ""}], "temperature": 1}, True),
        (MESSAGES, {"system": "s", "messages": [{"role": "user", "content": "x"}]}, True),
        (MESSAGES, {"messages": [{"role": "user", "content": "x"}]}, True),
        (CHAT, {"messages": [{"role": "user", "content": "x", "name": "n"}]}, False),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, False),
        (CHAT, {"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, False),
        (CHAT, {"messages": [], "chat_template_kwargs": {"a": 1}}, False),
        (CHAT, {"messages": [], "add_generation_prompt": False}, False),
        (CHAT, {"messages": [], "tools": [{}]}, False),
        (MESSAGES, {"system": [], "messages": []}, False),
        (RESPONSES, {"input": "x"}, False),
        ("/v1/completions", {"prompt": "x"}, False),
    ],
)
def test_what_is_taken_from_the_decoded_body_is_what_reading_it_again_gives(
    path: str, fields: dict[str, Any], *, is_plain: bool
) -> None:
    raw = json.dumps({"model": "m"} | fields).encode()

    _, decoded = read_fields(path, raw)
    turns = plain_turns(decoded)

    assert (turns is not None) is is_plain
    if turns is not None:
        assert Conversation(messages=turns) == conversation_of(path, raw)
