"""Anthropic's client, LangChain's and curl, unmodified, through every face."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretStr

from tests.e2e.envoy.clients import ALL_WAYS, ARGUMENTS, HELLO, SCHEMA, one_for_each
from tests.e2e.envoy.stack import Gateways
from tests.routing.servers.scripted import MODEL, SECRET

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]
TOOL = {"name": "weather", "description": "The weather.", "input_schema": SCHEMA}


@pytest.fixture(params=ALL_WAYS)
def url(request: pytest.FixtureRequest, gateways: Gateways) -> str:
    return gateways.urls[request.param]


@pytest.fixture(scope="module")
def clients() -> Iterator[Callable[[str], anthropic.Anthropic]]:
    with one_for_each(
        lambda url: anthropic.Anthropic(base_url=url, api_key=SECRET, max_retries=0, timeout=30)
    ) as client_of:
        yield client_of


@pytest.fixture
def claude(clients: Callable[[str], anthropic.Anthropic], url: str) -> anthropic.Anthropic:
    return clients(url)


def message(client: anthropic.Anthropic, **more: Any) -> Any:
    return client.messages.create(**{"model": MODEL, "max_tokens": 8, "messages": HELLO} | more)


def test_a_message_and_its_stream_say_the_same(claude: anthropic.Anthropic) -> None:
    whole = message(claude)
    with claude.messages.stream(model=MODEL, max_tokens=8, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()

    assert (whole.stop_reason, whole.usage.output_tokens) == ("max_tokens", 8)
    assert text == final.content[0].text == whole.content[0].text
    assert final.usage.output_tokens == 8


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_tools_are_called_and_their_results_answered(
    claude: anthropic.Anthropic, stream: bool
) -> None:
    wish: dict[str, Any] = {"tools": [TOOL], "tool_choice": {"type": "any"}, "max_tokens": 50}
    if stream:
        with claude.messages.stream(model=MODEL, messages=HELLO, **wish) as events:
            asked: Any = events.get_final_message()
    else:
        asked = message(claude, **wish)

    call = asked.content[0]
    assert (asked.stop_reason, call.name, call.input) == ("tool_use", "weather", ARGUMENTS)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sunny."}
    turns = [
        *HELLO,
        {"role": "assistant", "content": asked.content},
        {"role": "user", "content": [result]},
    ]
    assert message(claude, messages=turns, tools=[TOOL]).content[0].text


def test_a_stop_sequence_a_system_prompt_and_a_count(claude: anthropic.Anthropic) -> None:
    text = message(claude, system="Be short.").content[0].text

    stopped = message(claude, system="Be short.", stop_sequences=[text[4:7]])
    count = claude.messages.count_tokens(model=MODEL, messages=HELLO)

    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", text[4:7])
    assert count.input_tokens > 0


@pytest.mark.parametrize(
    ("wish", "kind", "word"),
    [
        ({"model": "nobody"}, anthropic.NotFoundError, "not_found_error"),
        ({"messages": 5}, anthropic.BadRequestError, "invalid_request_error"),
    ],
)
def test_a_refused_message_is_the_librarys_own_error(
    claude: anthropic.Anthropic,
    wish: dict[str, Any],
    kind: type[anthropic.APIStatusError],
    word: str,
) -> None:
    with pytest.raises(kind) as caught:
        message(claude, **wish)

    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == word


def test_a_wrong_key_is_anthropics_error_of_authentication(url: str) -> None:
    with (
        anthropic.Anthropic(base_url=url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        message(stranger)

    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "authentication_error"


@tool
def weather(city: str, days: int) -> str:
    """The weather."""
    return f"Sunny in {city} for {days} days."


class Forecast(BaseModel):
    """A forecast."""

    city: str
    days: int


@pytest.fixture
def chain(url: str) -> ChatOpenAI:
    return ChatOpenAI(
        model=MODEL, base_url=f"{url}/v1", api_key=SecretStr(SECRET), max_retries=0, timeout=30
    )


def test_langchain_asks_streams_and_counts(chain: ChatOpenAI) -> None:
    short = chain.bind(max_tokens=8)

    whole = short.invoke("Hello.")
    chunks = list(short.stream("Hello.", stream_usage=True))

    assert isinstance(whole, AIMessage)
    assert "".join(str(chunk.content) for chunk in chunks) == whole.content
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 8
    assert (
        sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata) == 8
    )


def test_langchain_runs_a_loop_of_tools(chain: ChatOpenAI) -> None:
    able = chain.bind_tools([weather])

    asked = able.invoke([HumanMessage("Weather?")])
    call = asked.tool_calls[0]
    result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
    told = able.invoke([HumanMessage("Weather?"), asked, result])

    assert (call["name"], call["args"]) == ("weather", ARGUMENTS)
    assert told.content
    assert not told.tool_calls


def test_langchain_gets_an_object_of_a_class(chain: ChatOpenAI) -> None:
    forecast = chain.with_structured_output(Forecast, method="function_calling").invoke("Weather?")

    assert forecast == Forecast(**ARGUMENTS)


def test_langchain_embeds(url: str) -> None:
    embeddings = OpenAIEmbeddings(
        model=MODEL,
        base_url=f"{url}/v1",
        api_key=SecretStr(SECRET),
        # It would cut texts with a tokenizer of OpenAI's, which it fetches.
        check_embedding_ctx_length=False,
    )

    assert len(embeddings.embed_documents(["one", "two"])) == 2


def curl(url: str, *arguments: str) -> list[str]:
    """What curl prints; its version of the protocol is its own choice."""
    command = ["curl", "--silent", "--no-buffer", "--max-time", "20", *arguments, url]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return done.stdout.splitlines()


def test_curl_asks_and_streams(url: str) -> None:
    body = {"model": MODEL, "messages": HELLO, "max_tokens": 4}
    headers = ["-H", f"Authorization: Bearer {SECRET}", "-H", "Content-Type: application/json"]
    target = f"{url}/v1/chat/completions"

    whole = curl(target, *headers, "-d", json.dumps(body))
    stream = curl(target, *headers, "-d", json.dumps(body | {"stream": True}))
    models = curl(f"{url}/v1/models", *headers)
    stranger = curl(target, "-w", "%{http_code}", "-d", json.dumps(body))

    assert json.loads("\n".join(whole))["choices"][0]["message"]["content"]
    assert stream[-2:] == ["data: [DONE]", ""]
    assert json.loads("\n".join(models))["object"] == "list"
    assert stranger[-1].endswith("401")
