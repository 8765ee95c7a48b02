"""The demo's printed key opens its router to OpenAI's client; sessions are in `envoy/`."""

from collections.abc import Iterator

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


def test_the_key_sees_its_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
