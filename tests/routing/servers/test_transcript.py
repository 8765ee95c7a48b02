"""What a transcript knows of a stream, however its events were cut into parts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.servers import transcript as module
from routing.servers.transcript import Transcript, event_data


def sse(**event: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps(event).encode()


def told(text: str, **choice: Any) -> bytes:
    return sse(id="i", created=1, choices=[{"index": 0, "text": text, **choice}])


def read(*events: bytes) -> Transcript:
    transcript = Transcript()
    for event in events:
        transcript.add(event)
    transcript.read()
    return transcript


@given(st.lists(st.text(max_size=20), max_size=20), st.integers(1, 5))
def test_text_and_count_do_not_depend_on_how_events_came(texts: list[str], size: int) -> None:
    events = [told(text) for text in texts]
    parts = [b"".join(events[start : start + size]) for start in range(0, len(events), size)]

    transcript = read(*parts)

    assert transcript.text == "".join(texts)
    assert transcript.tokens == sum(bool(text) for text in texts)
    assert transcript.can_go_on


def test_ids_are_known_when_every_one_came() -> None:
    first = told("a", token_ids=[7], prompt_token_ids=[1, 2])

    whole, partly = read(first, told("bc", token_ids=[8, 9])), read(first, told("b"))

    assert (whole.ids, whole.tokens) == ([1, 2, 7, 8, 9], 3)
    assert (partly.ids, partly.tokens) == (None, 2)


def test_a_chats_prompt_ids_come_with_its_opening() -> None:
    opening = sse(choices=[{"index": 0, "delta": {"role": "assistant"}}], prompt_token_ids=[4])
    word = sse(choices=[{"index": 0, "delta": {"content": "x"}, "token_ids": [5]}])

    assert read(opening, word).ids == [4, 5]


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"function_call": {"name": "f"}},
    ],
)
def test_a_tool_call_cannot_go_on(delta: dict[str, Any]) -> None:
    transcript = read(sse(choices=[{"index": 0, "delta": delta}]))

    assert not transcript.can_go_on


@pytest.mark.parametrize("value", [None, [], {}])
def test_an_empty_tool_call_is_none(value: Any) -> None:
    assert read(sse(choices=[{"index": 0, "delta": {"tool_calls": value}}])).can_go_on


def test_reasoning_counts_and_is_no_text() -> None:
    transcript = read(sse(choices=[{"index": 0, "delta": {"reasoning": "hm"}}]))

    assert (transcript.tokens, transcript.text, transcript.has_reasoning) == (1, "", True)


def test_a_second_choice_or_a_broken_event_cannot_go_on() -> None:
    second = sse(choices=[{"index": 1, "text": "x"}])

    assert not read(second).can_go_on
    assert not read(b"data: {broken\n\n").can_go_on


def test_the_end_is_known() -> None:
    ended = read(told("a"), told("", finish_reason="length"))

    assert (ended.finish_reason, ended.is_done) == ("length", False)
    assert read(b"data: [DONE]\n\n").is_done


def test_an_answer_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    transcript = read(*(told("x" * 60) for _ in range(3)))

    assert not transcript.can_go_on
    assert transcript.text == ""


def test_comments_and_other_line_ends_are_read() -> None:
    assert event_data(b": ping\n\ndata: 1\r\n\r\nevent: x\ndata: 2\ndata: 3\n\n") == [b"1", b"2\n3"]
