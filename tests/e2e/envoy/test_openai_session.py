"""OpenAI's own client, unmodified, through every face."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.e2e.envoy.clients import (
    ALL_WAYS,
    ARGUMENTS,
    HELLO,
    PICTURE,
    SCHEMA,
    WEATHER,
    one_for_each,
)
from tests.e2e.envoy.stack import ADAPTER, Gateways
from tests.routing.servers.scripted import MODEL, SECRET

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]
TOOL = {"type": "function", "function": WEATHER}


@pytest.fixture(params=ALL_WAYS)
def url(request: pytest.FixtureRequest, gateways: Gateways) -> str:
    return f"{gateways.urls[request.param]}/v1"


@pytest.fixture(scope="module")
def clients() -> Iterator[Callable[[str], openai.OpenAI]]:
    with one_for_each(
        lambda url: openai.OpenAI(base_url=url, api_key=SECRET, max_retries=0, timeout=30)
    ) as client_of:
        yield client_of


@pytest.fixture
def client(clients: Callable[[str], openai.OpenAI], url: str) -> openai.OpenAI:
    return clients(url)


def chat(client: openai.OpenAI, **more: Any) -> Any:
    wish = {"model": MODEL, "messages": HELLO, "max_tokens": 8} | more
    return client.chat.completions.create(**wish)


def test_models_and_a_chat_with_its_usage(client: openai.OpenAI) -> None:
    assert {MODEL, ADAPTER} <= {model.id for model in client.models.list()}

    answer = chat(client)

    assert answer.choices[0].message.content
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 8)


def test_a_stream_ends_with_the_usage_that_was_asked_for(client: openai.OpenAI) -> None:
    whole = chat(client)

    chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == 8
    assert not chunks[-1].choices


def test_a_stream_tells_no_usage_that_nobody_asked_for(client: openai.OpenAI) -> None:
    chunks = list(chat(client, stream=True))

    assert chunks
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


def test_a_tool_is_called_and_its_result_answered(client: openai.OpenAI) -> None:
    asked = chat(client, tools=[TOOL], max_tokens=50)

    call = asked.choices[0].message.tool_calls[0]
    assert asked.choices[0].finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", ARGUMENTS)
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny."}
    turns = [*HELLO, asked.choices[0].message.model_dump(exclude_none=True), result]
    told = chat(client, messages=turns, tools=[TOOL])
    assert told.choices[0].message.content


def test_a_streamed_call_is_put_together_by_the_library(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=HELLO, tools=[TOOL], tool_choice="required", max_tokens=50
    ) as stream:
        final = stream.get_final_completion()

    calls = final.choices[0].message.tool_calls
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == ARGUMENTS


def test_logprobs_choices_and_stop(client: openai.OpenAI) -> None:
    answer = chat(client, n=2, logprobs=True, top_logprobs=2)

    texts = [choice.message.content for choice in answer.choices]
    assert len(set(texts)) == 2
    entries = answer.choices[0].logprobs.content
    assert "".join(entry.token for entry in entries) == texts[0]
    assert all(len(entry.top_logprobs) == 2 for entry in entries)
    stopped = chat(client, stop=[texts[0][5:8]])
    assert stopped.choices[0].finish_reason == "stop"
    assert texts[0].startswith(stopped.choices[0].message.content)


def test_choices_of_a_stream_have_their_numbers(client: openai.OpenAI) -> None:
    chunks = chat(client, n=2, stream=True)

    texts: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
    assert sorted(texts) == [0, 1]
    assert texts[0] != texts[1]


def test_a_picture_an_adapter_and_fields_of_the_engine(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": PICTURE}}]

    seen = chat(client, messages=[{"role": "user", "content": parts}])
    tuned = chat(client, model=ADAPTER)
    salted = chat(client, extra_body={"cache_salt": "mine", "priority": 1}, user="ana")

    assert seen.usage.prompt_tokens > 256
    assert tuned.model == ADAPTER
    assert salted.choices[0].message.content


def test_the_older_completions(client: openai.OpenAI) -> None:
    whole = client.completions.create(model=MODEL, prompt="Once", max_tokens=6, logprobs=1)
    stream = client.completions.create(model=MODEL, prompt="Once", max_tokens=6, stream=True)

    assert whole.choices[0].logprobs is not None
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_embeddings_in_the_librarys_own_form(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model=MODEL, input=["one", "two", "one"], dimensions=64)

    first, second, third = (one.embedding for one in answer.data)
    assert first == third != second
    assert len(first) == 64


def test_responses_whole_streamed_and_with_a_tool(client: openai.OpenAI) -> None:
    whole = client.responses.create(model=MODEL, input="Hello.", max_output_tokens=8)
    with client.responses.stream(model=MODEL, input="Hello.", max_output_tokens=8) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    called = client.responses.create(
        model=MODEL, input="Weather?", tools=[{"type": "function", "strict": False, **WEATHER}]
    )

    assert whole.usage is not None
    assert (whole.usage.output_tokens, "".join(deltas)) == (8, whole.output_text)
    assert called.output[0].type == "function_call"
    assert json.loads(called.output[0].arguments) == ARGUMENTS


def test_a_wish_for_a_schema_passes(client: openai.OpenAI) -> None:
    wish = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}

    # A simulated engine speaks in words whatever the form.
    assert chat(client, response_format=wish).choices[0].message.content


@pytest.mark.parametrize(
    ("wish", "kind"),
    [
        ({"model": "nobody"}, openai.NotFoundError),
        ({"messages": []}, openai.BadRequestError),
        ({"max_tokens": 0}, openai.BadRequestError),
        ({"extra_body": {"kv_transfer_params": {"x": 1}}}, openai.BadRequestError),
    ],
)
def test_a_refused_request_is_the_librarys_own_error(
    client: openai.OpenAI, wish: dict[str, Any], kind: type[openai.APIStatusError]
) -> None:
    with pytest.raises(kind) as caught:
        chat(client, **wish)

    assert caught.value.message
    assert caught.value.type is not None


def test_a_wrong_key_is_an_error_of_authentication(url: str) -> None:
    with (
        openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        chat(stranger)


def test_a_body_over_the_limit_is_413(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        chat(client, messages=[{"role": "user", "content": "x" * 34_000_000}])

    assert caught.value.status_code == 413


def test_a_client_that_leaves_a_stream_can_go_on(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=5000, stream=True, extra_body={"ignore_eos": True}
    ) as stream:
        next(iter(stream))

    assert chat(client).choices[0].message.content


def test_tokens_of_a_text_and_back(url: str) -> None:
    headers = {"authorization": f"Bearer {SECRET}"}
    root = url.removesuffix("/v1")
    with httpx.Client(base_url=root, headers=headers, timeout=20) as plain:
        told = plain.post("/tokenize", json={"model": MODEL, "prompt": "Once upon"}).json()
        back = plain.post("/detokenize", json={"model": MODEL, "tokens": told["tokens"]}).json()

    assert back == {"prompt": "Once upon"}
