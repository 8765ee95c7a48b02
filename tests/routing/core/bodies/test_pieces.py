"""One conversation, one identity: the same keys over every API that can carry it."""

import json
from typing import Any

import pytest

from routing.core.bodies import pieces
from routing.core.document import PromptIdentity
from routing.core.openai import ParsedBody, RequestError, parse_request, read_fields

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
IDENTITY = PromptIdentity(chunk_bytes=16)
SYSTEM, QUESTION, ANSWER = "You are terse. " * 20, "What is the time? " * 20, "Noon. " * 20
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}}


def parse(path: str, /, **fields: Any) -> ParsedBody:
    return parse_request(path, json.dumps({"model": "m"} | fields).encode(), identity=IDENTITY)


def keys(path: str, /, **fields: Any) -> list[int]:
    return parse(path, **fields).block_keys.tolist()


def chat(*messages: tuple[str, Any], **fields: Any) -> list[int]:
    listed = [{"role": role, "content": content} for role, content in messages]
    return keys(CHAT, messages=listed, **fields)


@pytest.mark.lesson("X09")
def test_a_conversation_has_the_same_keys_over_chat_messages_and_responses() -> None:
    turns = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": QUESTION},
    ]

    over_chat = keys(CHAT, messages=[{"role": "system", "content": SYSTEM}, *turns])

    assert len(over_chat) > 50
    assert keys(MESSAGES, system=SYSTEM, messages=turns, max_tokens=9) == over_chat
    assert keys(RESPONSES, instructions=SYSTEM, input=turns) == over_chat


@pytest.mark.lesson("X09")
def test_text_in_parts_is_the_same_as_text() -> None:
    plain = chat(("system", SYSTEM), ("user", QUESTION))
    blocks = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    part = [{"type": "text", "text": QUESTION}]
    input_part = [{"type": "input_text", "text": QUESTION}]

    assert chat(("system", SYSTEM), ("user", part)) == plain
    assert keys(MESSAGES, system=blocks, messages=[{"role": "user", "content": part}]) == plain
    item = {"type": "message", "role": "user", "content": input_part}
    assert keys(RESPONSES, instructions=SYSTEM, input=[item]) == plain
    assert keys(RESPONSES, instructions=SYSTEM, input=QUESTION) == plain


@pytest.mark.lesson("X09")
def test_tools_and_their_calls_have_the_same_keys_in_every_form() -> None:
    described = {"name": "clock", "description": "Tells the time. " * 9}
    arguments = {"zone": "Asia/Seoul", "precise": True}
    over_chat = keys(
        CHAT,
        tools=[{"type": "function", "function": described | {"parameters": SCHEMA}}],
        messages=[
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "call-1",
                        "type": "function",
                        "function": {"name": "clock", "arguments": json.dumps(arguments)},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call-1", "content": ANSWER},
        ],
    )
    use = {"type": "tool_use", "id": "call-1", "name": "clock", "input": arguments}
    result = {"type": "tool_result", "tool_use_id": "call-1", "content": ANSWER}

    over_messages = keys(
        MESSAGES,
        tools=[described | {"input_schema": SCHEMA}],
        messages=[
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ],
    )
    call = {
        "type": "function_call",
        "call_id": "call-1",
        "name": "clock",
        "arguments": json.dumps(arguments),
    }
    over_responses = keys(
        RESPONSES,
        tools=[{"type": "function"} | described | {"parameters": SCHEMA}],
        input=[
            {"role": "user", "content": QUESTION},
            call,
            {"type": "function_call_output", "call_id": "call-1", "output": ANSWER},
        ],
    )

    assert over_messages == over_chat
    assert over_responses == over_chat
    assert parse(MESSAGES, tools=[described], messages=[]).uses_tools


def test_what_a_tool_answered_comes_before_the_rest_of_its_message() -> None:
    content = [
        {"type": "text", "text": QUESTION},
        {"type": "tool_result", "content": [{"type": "text", "text": ANSWER}]},
    ]

    found = keys(MESSAGES, messages=[{"role": "user", "content": content}])

    assert found == chat(("tool", ANSWER), ("user", QUESTION))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "hologram", "waves": "{}"},
        {"type": "text", "text": 5, "more": "{}"},
        {"deep": [[{"value": "{}"}]]},
        7,
    ],
)
def test_a_part_of_unknown_shape_stands_for_itself(part: Any) -> None:
    def of(word: str) -> list[int]:
        filled = json.loads(json.dumps(part).replace("{}", word * 50))
        return chat(("user", [filled]), ("user", QUESTION))

    assert of("a") == of("a")
    if isinstance(part, dict):
        assert of("a") != of("b")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"messages": [], "tools": [{"type": "function"}, {"type": "web_search"}, 5]}),
        (CHAT, {"messages": [{"role": "assistant", "tool_calls": ["odd", {"id": 5}]}]}),
        (RESPONSES, {"input": ["odd", {"type": "reasoning", "summary": []}]}),
        (MESSAGES, {"messages": [], "system": []}),
    ],
)
def test_odd_values_inside_are_left_to_the_engine(path: str, fields: dict[str, Any]) -> None:
    assert parse(path, **fields).prompt_tokens >= 1


@pytest.mark.parametrize("ids", [[1, -1], [2**32], [True, 5], [[1], [2**40]]])
def test_what_is_no_token_id_is_refused(ids: Any) -> None:
    with pytest.raises(RequestError) as caught:
        parse("/v1/completions", prompt=ids)

    assert caught.value.status == 400


@pytest.mark.lesson("X11")
def test_a_prompt_that_is_not_in_the_body_is_said_to_be_unknown() -> None:
    assert parse(RESPONSES, input=QUESTION).degraded is None
    followed = parse(RESPONSES, input=QUESTION, previous_response_id="resp_1")
    assert followed.degraded == "previous-response"


def test_results_of_tools_come_before_what_else_a_message_says_however_many_they_are() -> None:
    results = [{"type": "tool_result", "content": f"{number} {ANSWER}"} for number in range(3)]
    said = [{"type": "text", "text": f"tool_result {number} {QUESTION}"} for number in range(3)]
    mixed = [part for pair in zip(said, results, strict=True) for part in pair]

    found = keys(MESSAGES, messages=[{"role": "user", "content": mixed}])

    assert found == keys(MESSAGES, messages=[{"role": "user", "content": [*results, *said]}])
    only = keys(MESSAGES, messages=[{"role": "user", "content": results}])
    assert only == found[: len(only)]


def test_more_media_than_an_engine_takes_are_refused_before_they_fill_memory() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://pictures/1.png"}}

    assert parse(CHAT, messages=[{"role": "user", "content": [part] * 10}]).is_multimodal
    with pytest.raises(RequestError, match="999"):
        parse(CHAT, messages=[{"role": "user", "content": [part] * 1000}])


@pytest.mark.parametrize(
    ("path", "body", "is_one"),
    [
        ("/v1/completions", {"prompt": "x"}, True),
        ("/v1/completions", {"prompt": ["x"], "n": 1}, True),
        ("/v1/completions", {"prompt": [1, 2, 3]}, True),
        ("/v1/completions", {"prompt": ["x", "y"]}, False),
        ("/v1/completions", {"prompt": [[1], [2]]}, False),
        ("/v1/completions", {"prompt": "x", "n": 2}, False),
        ("/v1/chat/completions", {"messages": [], "n": 2}, False),
        ("/v1/responses", {"input": ["x", "y"]}, True),
    ],
)
def test_one_sequence_is_one_prompt_and_one_answer(
    path: str, body: dict[str, Any], is_one: bool
) -> None:
    raw = json.dumps({"model": "m"} | body).encode()

    assert pieces.is_one_sequence(read_fields(path, raw)[1]) == is_one
