"""What routing reads from request bodies, and how it refuses wrong ones."""

import json
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from routing.core.document import PromptIdentity
from routing.core.openai import ParsedBody, RequestError, parse_request

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
IDENTITY = PromptIdentity()


def parse(path: str = CHAT, /, *, salt: str = "", **fields: Any) -> ParsedBody:
    body = {"model": "m"} | fields
    if path == CHAT and "messages" not in fields:
        body["messages"] = [{"role": "user", "content": "hello " * 200}]
    return parse_request(path, json.dumps(body).encode(), identity=IDENTITY, salt=salt)


def refused(path: str, raw: bytes) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse_request(path, raw, identity=IDENTITY)
    return caught.value


def test_a_chat_body_is_read() -> None:
    parsed = parse(stream=True, max_tokens=7, n=2, user="u", temperature=0.3, top_p=None)

    assert (parsed.model, parsed.stream, parsed.max_tokens, parsed.n) == ("m", True, 7, 2)
    assert parsed.user == "u"
    assert parsed.prompt_bytes == 1200 + len("user") + 1
    assert parsed.prompt_tokens == round(parsed.prompt_bytes / 4)
    assert len(parsed.block_keys) == parsed.prompt_bytes // 256
    assert parsed.block_keys.dtype == np.uint64


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, False),
        ({}, False),
        ({"include_usage": False}, False),
        ({"include_usage": True}, True),
    ],
)
def test_whether_the_client_asked_for_usage(options: Any, expected: bool) -> None:
    assert parse(stream=True, stream_options=options).include_usage is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, None), ({"max_tokens": 5}, 5), ({"max_tokens": 5, "max_completion_tokens": 9}, 9)],
)
def test_the_newer_name_of_the_output_limit_wins(
    fields: dict[str, int], expected: int | None
) -> None:
    assert parse(**fields).max_tokens == expected


def test_learned_bytes_per_token_change_the_estimate_only() -> None:
    raw = json.dumps({"model": "m", "prompt": "x" * 5120}).encode()

    guess = parse_request(COMPLETIONS, raw, identity=IDENTITY)
    learned = parse_request(COMPLETIONS, raw, identity=IDENTITY, bytes_per_token=2.5)

    assert (guess.prompt_tokens, learned.prompt_tokens) == (1280, 2048)
    assert (guess.chunk_tokens, learned.chunk_tokens) == (64, 102.4)
    assert (guess.block_keys == learned.block_keys).all()


def test_token_ids_are_counted_exactly() -> None:
    parsed = parse(COMPLETIONS, prompt=list(range(1000)))

    assert parsed.prompt_tokens == 1000
    assert parsed.has_exact_tokens
    assert parsed.chunk_tokens * len(parsed.block_keys) <= 1000


@pytest.mark.parametrize("wrong", [-1, 2**32, True, 10**30])
def test_what_is_no_token_id_is_refused_by_its_value(wrong: Any) -> None:
    # A long list is packed at once; the one that is wrong is told all the same.
    raw = json.dumps({"model": "m", "prompt": [1] * 100 + [wrong] + [2] * 100}).encode()

    assert str(wrong) in refused(COMPLETIONS, raw).message


@pytest.mark.parametrize(
    ("prompt", "per_token"),
    [pytest.param(list(range(5000)), 1, id="ids"), pytest.param("word " * 5000, 4, id="text")],
)
def test_behind_the_context_of_the_model_there_are_no_keys(prompt: Any, per_token: int) -> None:
    raw = json.dumps({"model": "m", "prompt": prompt}).encode()

    whole = parse_request(COMPLETIONS, raw, identity=IDENTITY)
    cut = parse_request(COMPLETIONS, raw, identity=IDENTITY, most_tokens=640)

    assert cut.prompt_tokens == whole.prompt_tokens
    assert len(cut.block_keys) * cut.chunk_tokens == 640 * per_token
    assert (cut.block_keys == whole.block_keys[: len(cut.block_keys)]).all()


@pytest.mark.parametrize("prompt", ["text", ["a", "b"], [1, 2, 3], [[1, 2], [3]]])
def test_every_form_of_a_completion_prompt_is_read(prompt: Any) -> None:
    assert parse(COMPLETIONS, prompt=prompt).prompt_tokens >= 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"model": "other"}, id="model"),
        pytest.param({"cache_salt": "s"}, id="cache-salt"),
        pytest.param({"salt": "tenant"}, id="tenant-salt"),
        pytest.param({"tools": [{"type": "function"}]}, id="tools"),
        pytest.param({"messages": [{"role": "system", "content": "hello " * 200}]}, id="role"),
        pytest.param({"messages": [{"role": "user", "content": "Hello " * 200}]}, id="text"),
    ],
)
def test_whatever_changes_the_cache_changes_the_first_key(change: dict[str, Any]) -> None:
    assert parse(**change).block_keys[0] != parse().block_keys[0]


@pytest.mark.parametrize(
    "change", [{"temperature": 1}, {"stream": True}, {"max_tokens": 9}, {"seed": 3}, {"user": "x"}]
)
def test_sampling_fields_do_not_change_the_keys(change: dict[str, Any]) -> None:
    assert (parse(**change).block_keys == parse().block_keys).all()


def test_prompts_share_exactly_the_keys_of_their_common_beginning() -> None:
    system = {"role": "system", "content": "s" * 2555}
    first, second = (
        parse(messages=[system, {"role": "user", "content": text * 1000}]) for text in "ab"
    )

    # "system", a separator and the text are 2562 bytes, so the tenth chunk is the last common one.
    shared = (first.block_keys[:14] == second.block_keys[:14]).sum()
    assert shared == 10


def test_content_parts_and_tool_calls_enter_the_keys() -> None:
    def keys(image: str, call: str) -> Any:
        content = [{"type": "image_url", "image_url": {"url": image * 300}}]
        calls = [{"id": call, "function": {"name": "f", "arguments": "x" * 300}}]
        messages = [
            {"role": "user", "content": content},
            {"role": "assistant", "content": None, "tool_calls": calls},
        ]
        return parse(messages=messages).block_keys.tolist()

    assert keys("a", "1") == keys("a", "1")
    assert keys("a", "1")[0] != keys("b", "1")[0]
    assert keys("a", "1")[:1] == keys("a", "2")[:1]
    assert keys("a", "1")[-1] != keys("a", "2")[-1]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/embeddings", {"input": ["a" * 300, "b"]}),
        ("/v1/responses", {"input": "a" * 300, "instructions": "b", "max_output_tokens": 4}),
        ("/v1/responses", {"input": [{"role": "user", "content": "a" * 300}]}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a" * 300}], "system": "s"}),
        ("/v1/chat/completions?beta=1", {"messages": [{"role": "user", "content": "a" * 300}]}),
    ],
)
def test_other_apis_get_block_keys_too(path: str, fields: dict[str, Any]) -> None:
    assert len(parse(path, **fields).block_keys) >= 1


@pytest.mark.parametrize(
    ("path", "body", "param", "words"),
    [
        (CHAT, '{"messages": []}', "model", "missing required field `model`"),
        (CHAT, '{"model": "m"}', "messages", "missing required field `messages`"),
        (CHAT, '{"model": 1, "messages": []}', "model", "Expected `str`, got `int`"),
        (CHAT, '{"model": "m", "messages": "x"}', "messages", "Expected `array`, got `str`"),
        (CHAT, '{"model": "m", "messages": [], "stream": "yes"}', "stream", "Expected `bool"),
        (CHAT, '{"model": "m", "messages": [], "max_tokens": 0}', "max_tokens", "allowed are 1 to"),
        pytest.param(
            CHAT,
            f'{{"model": "m", "messages": [], "max_tokens": {"9" * 400}}}',
            "max_tokens",
            "allowed are 1 to",
            id="max-tokens-beyond-any-float",
        ),
        pytest.param(
            CHAT,
            f'{{"model": "m", "messages": [], "x": {"[" * 100_000}{"]" * 100_000}}}',
            None,
            "nested too deeply",
            id="deep",
        ),
        (CHAT, '{"model": "m", "messages": [], "n": 0}', "n", "allowed are 1 to 128"),
        (CHAT, '["model"]', None, "Expected `object`, got `array`"),
        (CHAT, '{"model": "m", "messages": [}', None, "not JSON"),
        (CHAT, "", None, "not JSON"),
        (COMPLETIONS, '{"model": "m", "prompt": []}', "prompt", "empty list"),
        (COMPLETIONS, '{"model": "m", "prompt": [{}]}', "prompt", "type dict"),
        (COMPLETIONS, '{"model": "m", "prompt": [-1]}', "prompt", "no token id"),
        (COMPLETIONS, '{"model": "m", "prompt": [true]}', "prompt", "no token id"),
    ],
)
def test_a_wrong_body_is_400_with_the_field(
    path: str, body: str, param: str | None, words: str
) -> None:
    error = refused(path, body.encode())

    assert (error.status, error.type, error.code) == (400, "BadRequestError", 400)
    assert error.param == param
    assert words in error.message


def test_an_unknown_path_is_404_with_the_known_ones() -> None:
    error = refused("/v1/images", b"{}")

    assert (error.status, error.type) == (404, "NotFoundError")
    assert CHAT in error.message


def test_text_that_is_not_utf8_is_refused_also_where_it_is_not_read() -> None:
    error = refused(CHAT, b'{"model": "m", "messages": [], "\xff": 1}')

    assert error.status == 400
    assert "utf-8" in error.message


@given(raw=st.binary(max_size=120) | st.text(max_size=120).map(lambda text: text.encode()))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_refused_as_the_clients_mistake(raw: bytes) -> None:
    error = refused(CHAT, raw)

    assert error.status == 400
    assert error.message.endswith(".")


@given(
    system=st.text(max_size=800),
    question=st.text(max_size=800),
    chunk=st.sampled_from([16, 64, 256]),
)
@settings(max_examples=80, deadline=None)
def test_a_longer_prompt_extends_the_keys_of_its_beginning(
    system: str, question: str, chunk: int
) -> None:
    identity = PromptIdentity(chunk_bytes=chunk)

    def keys(prompt: str) -> list[int]:
        raw = json.dumps({"model": "m", "prompt": prompt}).encode()
        found: list[int] = parse_request(COMPLETIONS, raw, identity=identity).block_keys.tolist()
        return found

    short, long = keys(system), keys(system + question)

    assert long[: len(short)] == short
    assert len(set(long)) == len(long)
