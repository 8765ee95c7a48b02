"""A client library of OpenAI against a router: answers, streams, and errors in its own form."""

from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.e2e.stack import MODEL, Demo

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("demo")]
HELLO = [{"role": "user", "content": "Which accelerators are there?"}]


@pytest.fixture
def client(demo: Demo) -> Iterator[openai.OpenAI]:
    url = demo.routers["router-a"] + "/v1"
    with openai.OpenAI(base_url=url, api_key=demo.key, max_retries=0, timeout=60) as opened:
        yield opened


def test_a_chat_is_answered_with_its_usage(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=12)

    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12


def test_a_stream_ends_with_the_usage_that_was_asked_for(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=12, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip

    chunks = list(stream)

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 12


def test_an_unknown_model_is_404(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no-such-model", messages=HELLO)

    assert "no-such-model" in caught.value.message


def test_a_wrong_key_is_401(demo: Demo) -> None:
    url = demo.routers["router-b"] + "/v1"
    stranger = openai.OpenAI(base_url=url, api_key="csk_demo_wrong", max_retries=0)

    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.chat.completions.create(model=MODEL, messages=HELLO)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b'{"model": "granite-4.1-8b", "messages": [', 400, id="broken-json"),
        pytest.param(b" " * (33 * 1024 * 1024), 413, id="body-over-the-limit"),
    ],
)
def test_a_refused_body_is_answered_in_the_form_of_the_api(
    demo: Demo, body: bytes, status: int
) -> None:
    answer = httpx.post(
        demo.routers["router-a"] + "/v1/chat/completions", content=body, timeout=60,
        headers={"Authorization": f"Bearer {demo.key}", "Content-Type": "application/json"},
    )  # fmt: skip

    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_the_key_sees_its_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
