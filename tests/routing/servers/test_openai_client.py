"""The OpenAI client library against the router."""

from collections.abc import AsyncIterator

import openai
import pytest

from tests.routing.servers.scripted import MODEL, SECRET, Stage, chat, cuts_in_the_middle

MESSAGES = chat()["messages"]


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[openai.AsyncOpenAI]:
    await stage.engine("a")
    await stage.load()
    url = f"http://127.0.0.1:{stage.router.port}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=SECRET, max_retries=0) as client:
        yield client


async def test_a_whole_answer(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model=MODEL, messages=MESSAGES)

    assert answer.choices[0].message.content == "from a"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3


async def test_a_stream(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)

    words = [chunk.choices[0].delta.content async for chunk in stream]

    assert words == ["", "from", "a", "."]


async def test_a_stream_with_usage(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )

    usages = [chunk.usage async for chunk in stream if chunk.usage]

    assert [usage.completion_tokens for usage in usages] == [3]


async def test_models(client: openai.AsyncOpenAI) -> None:
    models = [model.id async for model in client.models.list()]

    assert models == [MODEL]


async def test_errors_arrive_as_the_librarys_own_classes(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="none", messages=MESSAGES)
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="sk-wrong").models.list()
    with pytest.raises(openai.BadRequestError):
        await client.chat.completions.create(model=MODEL, messages="x")  # type: ignore[arg-type]


async def test_an_interrupted_stream_is_an_error_and_not_a_short_answer(stage: Stage) -> None:
    await stage.engine("a", cuts_in_the_middle)
    await stage.load()
    url = f"http://127.0.0.1:{stage.router.port}/v1"

    async with openai.AsyncOpenAI(base_url=url, api_key=SECRET, max_retries=0) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
        with pytest.raises(openai.APIError, match="interrupted"):
            async for _ in stream:
                pass
