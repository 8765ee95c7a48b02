"""Bodies that are wrong in every way: the right refusal, in bounded time and memory."""

import json
import tracemalloc
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from routing.core.document import PromptIdentity
from routing.core.openai import PATHS, RequestError, parse_request

CHAT = "/v1/chat/completions"
IDENTITY = PromptIdentity()
HELLO = b'{"role":"user","content":"hello"}'


def refusal(raw: bytes, path: str = CHAT) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse_request(path, raw, identity=IDENTITY)
    return caught.value


def status(raw: bytes, path: str = CHAT) -> int:
    """200 for a body that is read."""
    try:
        parsed = parse_request(path, raw, identity=IDENTITY)
    except RequestError as error:
        return error.status
    return 200 if parsed.prompt_tokens >= 1 else 0


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"model":"m"}',
        b'{"model":5,"messages":[]}',
        b'{"model":"m","messages":{}}',
        b'{"model":"m","messages":[{"content":"no role"}]}',
        b'{"model":"m","messages":[{"role":"user","content":5}]}',
        b'{"model":"m","messages":[],"max_tokens":"7"}',
        b'{"model":"m","messages":[],"max_tokens":NaN}',
        b'{"model":"m","messages":[],"max_tokens":1e400}',
        b'{"model":"m","messages":[],"max_tokens":0}',
        b'{"model":"m","messages":[],"max_tokens":99999999999999999999999}',
        b'{"model":"m","messages":[],"n":1000}',
        b'{"model":"m","messages":[],"stream":"yes"}',
        b'{"model":"m","messages":[{"role":"user","content":"\xff\xfe"}]}',
        b'{"model":"m","messages":[],"metadata":"\xc3\x28"}',
        b'{"model":"m","messages":[]} trailing',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"model":"m","messages":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"model":"m","messages":[{"role":"user","content":[' + b'{"a":' * 50_000 + b"1",
    ],
)
def test_a_wrong_body_is_400_for_the_client(raw: bytes) -> None:
    error = refusal(raw)

    assert error.status == 400
    assert error.message
    assert len(error.message) < 300


@pytest.mark.parametrize("path", PATHS)
@given(raw=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_bytes_break_the_reader(path: str, raw: bytes) -> None:
    assert refusal(raw, path).status == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = ["messages", "prompt", "input", "system", "tools", "instructions", "max_tokens", "n"]
PARTS = [
    "role",
    "content",
    "type",
    "text",
    "image_url",
    "source",
    "tool_calls",
    "function",
    "input",
]


@given(
    path=st.sampled_from(PATHS),
    fields=st.dictionaries(
        st.sampled_from(NAMES), JSON | st.lists(st.dictionaries(st.sampled_from(PARTS), JSON))
    ),
)
def test_any_json_is_read_or_refused(path: str, fields: dict[str, Any]) -> None:
    raw = json.dumps({"model": "m"} | fields).encode()

    assert status(raw, path) in (200, 400)


def test_of_equal_names_the_last_one_counts_as_in_the_engines() -> None:
    raw = b'{"model":"a","messages":[%b],"model":"b","max_tokens":5,"max_tokens":7}' % HELLO

    parsed = parse_request(CHAT, raw, identity=IDENTITY)

    assert (parsed.model, parsed.max_tokens) == ("b", 7)
    assert (parsed.model, parsed.max_tokens) == (json.loads(raw)["model"], 7)


def test_a_lone_surrogate_is_read_or_refused_and_never_breaks() -> None:
    raw = b'{"model":"m","messages":[{"role":"user","content":"\\ud800 tail"}],"user":"\\udfff"}'

    assert status(raw) in (200, 400)


def test_ten_thousand_messages_are_read_in_memory_of_their_own_size() -> None:
    raw = b'{"model":"m","messages":[%b]}' % b",".join([HELLO] * 10_000)

    tracemalloc.start()
    try:
        parsed = parse_request(CHAT, raw, identity=IDENTITY)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert parsed.prompt_tokens > 20_000
    assert peak < 20 * len(raw)


@pytest.mark.parametrize("value", ["", [], None, [{"type": "text", "text": ""}]])
def test_an_empty_prompt_is_left_to_the_engine(value: Any) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": value}]}

    parsed = parse_request(CHAT, json.dumps(body).encode(), identity=IDENTITY)

    assert parsed.prompt_tokens == 1
    assert len(parsed.block_keys) == 0
