"""Prompts by token ids, against an engine that tokenises with the same or with other files."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from routing.core.prompt import exact_root, token_block_keys
from routing.identity.conversation import Conversation
from routing.servers import tokenising
from routing.servers.calls import read_call
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.identity.small_tokenizers import (
    CHATML,
    SYSTEM,
    TEXT,
    byte_level,
    crossing,
    with_template,
)
from tests.routing.servers.scripted import CHAT, MODEL, SECRET, Engine, Stage, answers, key

FIXED = CHATML.replace(
    "{% if messages[0].role != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n{% endif %}\n",
    "",
).replace(" | trim", "")
"""A template that looks at roles only."""


class Speaker:
    """An engine with a tokenizer; `asked` are the bodies of its `/tokenize`."""

    def __init__(self, tokenizer: Tokenizer, template: str = CHATML) -> None:
        self.set(tokenizer, template)
        self.asked: list[dict[str, Any]] = []
        self.is_down = False

    def set(self, tokenizer: Tokenizer, template: str) -> None:
        self._raw = tokenizer
        self._files = with_template(tokenizer, template)

    def ids(self, conversation: Conversation) -> list[int]:
        pieces = self._files.of_conversation(conversation)
        raw = b"".join(piece.lead + self._files.ids(piece.text) for piece in pieces)
        return np.frombuffer(raw, dtype="<u4").tolist()

    async def __call__(self, engine: Engine, received: HttpRequest, client: Connection) -> None:
        if received.path != "/tokenize":
            await answers(engine, received, client)
            return
        body = json.loads(received.body)
        self.asked.append(body)
        if self.is_down:
            client.respond(503, b"{}")
        elif "messages" in body:
            found = self.ids(Conversation(messages=body["messages"]))
            client.respond(200, json.dumps({"count": len(found), "tokens": found}).encode())
        else:
            found = self._raw.encode(body["prompt"], add_special_tokens=False).ids
            client.respond(200, json.dumps({"count": len(found), "tokens": found}).encode())


def write_files(stage: Stage, tokenizer: Tokenizer, template: str = CHATML) -> None:
    folder = stage.folder / "tokenizers" / "small"
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), "utf-8")
    (folder / "chat_template.jinja").write_text(template, "utf-8")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenising, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(tokenising, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(tokenising, "FIRST_PAUSE_SECONDS", 0.02)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def parsed(stage: Stage, body: dict[str, Any], path: str = CHAT) -> Any:
    raw = json.dumps(body).encode()
    headers = {b"authorization": f"Bearer {SECRET}".encode()}
    request = HttpRequest(method="POST", path=path, query="", headers=headers, body=raw)
    return read_call(stage.router.state, request, path=path, body=raw).request.parsed


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    roles = ("system", "user", "assistant", "user")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return {"model": MODEL, "messages": messages} | more


def keys_of(speaker: Speaker, body: dict[str, Any], salt: str | None = None) -> list[int]:
    ids = speaker.ids(Conversation(messages=body["messages"]))
    raw = np.array(ids, dtype="<u4").tobytes()
    return token_block_keys(raw, root=exact_root(None, salt), block_tokens=16).tolist()


async def findings(stage: Stage, code: str = "tokeniser-mismatch") -> list[dict[str, Any]]:
    state = (await stage.admin("GET", "/admin/state")).json
    return [one for one in state["pools"]["main"]["findings"] if one["code"] == code]


async def checks(stage: Stage, result: str) -> float:
    metric = stage.router.state.metrics.tokeniser_checks.labels("main", result)
    return float(metric._value.get())


TOKENS = {"mode": "tokens", "tokenizer": "small"}
ENGINE = {"mode": "engine"}


@pytest.mark.lesson("X07")
async def test_keys_are_those_of_the_engines_tokens(stage: Stage) -> None:
    speaker = Speaker(byte_level())
    await stage.engine("a", speaker)
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS)
    await until(lambda: speaker.asked)
    body = chat(SYSTEM, " Who is first? ", "The fastest.", "Why?")

    found = parsed(stage, body)

    assert found.block_keys.tolist() == keys_of(speaker, body)
    assert found.prompt_tokens == len(speaker.ids(Conversation(messages=body["messages"])))
    assert found.has_exact_tokens
    assert (found.chunk_tokens, found.degraded) == (16, None)
    salted = parsed(stage, body | {"cache_salt": "s"})
    assert salted.block_keys.tolist() == keys_of(speaker, body, "s")
    messages = {"model": MODEL, "system": SYSTEM, "messages": body["messages"][1:]}
    assert (parsed(stage, messages, "/v1/messages").block_keys == found.block_keys).all()


async def test_long_text_is_tokenised_in_the_background(stage: Stage) -> None:
    speaker = Speaker(byte_level())
    await stage.engine("a", speaker)
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS)
    await until(lambda: speaker.asked)
    body = chat(SYSTEM * 5, "Who?")

    first = parsed(stage, body)

    assert first.degraded == "tokens-partly-unknown"
    assert 0 < len(first.block_keys) < len(keys_of(speaker, body))
    whole = len(speaker.ids(Conversation(messages=body["messages"])))
    assert first.prompt_tokens == pytest.approx(whole, rel=0.7)
    await until(lambda: parsed(stage, body).degraded is None)
    assert parsed(stage, body).block_keys.tolist() == keys_of(speaker, body)


@pytest.mark.lesson("X08")
async def test_an_engine_with_another_tokenizer_is_a_finding_and_no_error(stage: Stage) -> None:
    good, other = Speaker(byte_level()), Speaker(byte_level(), CHATML.replace("system", "sys"))
    await stage.engine("a", good)
    await stage.engine("b", other)
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS)
    pool = stage.router.state.directory.pools["main"]

    await until(lambda: good.asked and other.asked)
    async with asyncio.timeout(10):
        while not await findings(stage):
            await asyncio.sleep(0.01)

    found = await findings(stage)
    assert [one["endpoint"] for one in found] == ["b"]
    trust = {row["id"]: row["trust"] for row in pool.router.snapshot(now=0.0)["endpoints"]}
    assert trust["a"] == 1.0
    assert trust["b"] < 0.5
    assert await checks(stage, "same") > 0
    assert (await stage.ask(chat(SYSTEM, "Who?"))).status == 200
    other.set(byte_level(), CHATML)
    async with asyncio.timeout(10):
        while await findings(stage):
            await asyncio.sleep(0.01)


@pytest.mark.lesson("X08")
async def test_an_upgrade_of_an_engine_is_noticed_later_too(stage: Stage) -> None:
    speaker = Speaker(byte_level())
    await stage.engine("a", speaker)
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS)
    await until(lambda: len(speaker.asked) > 1)
    assert await findings(stage) == []

    speaker.set(crossing(), CHATML)

    async with asyncio.timeout(10):
        while not await findings(stage):
            await asyncio.sleep(0.01)


@pytest.mark.lesson("X11")
async def test_what_is_not_plain_text_is_routed_by_bytes_and_says_so(stage: Stage) -> None:
    await stage.engine("a", Speaker(byte_level()))
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS, keys=[key("ana", SECRET, may_test=True)])
    pool = stage.router.state.directory.pools["main"]
    await until(lambda: pool.reader and pool.reader._reader)
    picture = [{"type": "image_url", "image_url": {"url": "https://x/" + "y" * 400}}]
    body = {"model": MODEL, "messages": [{"role": "user", "content": picture}]}

    found = parsed(stage, body)
    question = {"path": CHAT, "body": body}
    explained = await stage.ask(question, path="/v1/explain")

    assert (found.degraded, found.is_multimodal) == ("prompt-multimodal", True)
    assert len(found.block_keys) > 0
    assert "prompt-multimodal" in explained.json["degraded"]


async def test_a_body_that_is_only_explained_is_read_by_its_tokens_too(stage: Stage) -> None:
    await stage.engine("a", Speaker(byte_level()))
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS)
    pool = stage.router.state.directory.pools["main"]
    await until(lambda: pool.reader and pool.reader._reader)
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}]}

    answer = await stage.admin(
        "POST", "/admin/explain", {"pool": "main", "tenant": "tenant-ana", "body": body}
    )

    record = answer.json["record"]
    assert record["request"]["prompt_tokens"] == parsed(stage, body).prompt_tokens
    assert record["request"]["has_exact_tokens"]


@pytest.mark.parametrize("identity", [TOKENS, ENGINE], ids=["no-files", "no-answers"])
async def test_without_a_tokenizer_requests_are_served_all_the_same(
    stage: Stage, identity: dict[str, str]
) -> None:
    speaker = Speaker(byte_level())
    speaker.is_down = True
    await stage.engine("a", speaker)
    await stage.load(prompt_identity=identity)

    answer = await stage.ask(chat(SYSTEM, "Who?"))

    assert answer.status == 200
    found = parsed(stage, chat(SYSTEM, "Who?"))
    assert found.degraded == "tokeniser-unavailable"
    assert len(found.block_keys) > 0
    async with asyncio.timeout(10):
        while not await findings(stage, "tokeniser-unavailable"):
            await asyncio.sleep(0.01)
    assert (await findings(stage, "tokeniser-unavailable"))[0]["endpoint"] is None


async def test_files_that_come_later_are_taken(stage: Stage) -> None:
    await stage.engine("a", Speaker(byte_level()))
    await stage.load(prompt_identity=TOKENS)
    assert parsed(stage, chat("a", "b")).degraded == "tokeniser-unavailable"

    write_files(stage, byte_level())

    await until(lambda: parsed(stage, chat("a", "b")).degraded is None)
    assert await findings(stage, "tokeniser-unavailable") == []


async def test_an_engine_tokenises_each_piece_once(stage: Stage) -> None:
    speaker = Speaker(byte_level(), FIXED)
    await stage.engine("a", speaker)
    await stage.load(prompt_identity=ENGINE)
    pool = stage.router.state.directory.pools["main"]
    await until(lambda: pool.reader and pool.reader._reader)
    bodies = [chat(SYSTEM, f"{TEXT[:100]} {number}") for number in range(3)]

    assert parsed(stage, bodies[0]).degraded == "tokens-not-known-yet"
    await until(lambda: parsed(stage, bodies[0]).degraded is None)
    second = parsed(stage, bodies[1])

    assert parsed(stage, bodies[0]).block_keys.tolist() == keys_of(speaker, bodies[0])
    assert len(second.block_keys) > len(keys_of(speaker, bodies[1])) - 10
    await until(lambda: parsed(stage, bodies[1]).degraded is None)
    prompts = [body["prompt"] for body in speaker.asked if body.get("prompt", "-") in SYSTEM]
    assert len(prompts) == len(set(prompts))
    assert await findings(stage) == []


async def test_an_engine_that_fails_is_said_to(stage: Stage) -> None:
    speaker = Speaker(byte_level(), FIXED)
    await stage.engine("a", speaker)
    await stage.load(prompt_identity=ENGINE)
    pool = stage.router.state.directory.pools["main"]
    await until(lambda: pool.reader and pool.reader._reader)
    speaker.is_down = True

    parsed(stage, chat(SYSTEM, "Who?"))

    await until(lambda: parsed(stage, chat(SYSTEM, "Who?")).degraded == "tokeniser-unavailable")


async def test_a_new_template_at_all_engines_is_learned_again(stage: Stage) -> None:
    speaker = Speaker(byte_level(), FIXED)
    await stage.engine("a", speaker)
    await stage.load(prompt_identity=ENGINE)
    body = chat("Be quick.", "Who?")
    await until(lambda: parsed(stage, body).has_exact_tokens)

    speaker.set(byte_level(), FIXED.replace("<|im_end|>\n", "<|im_end|>"))

    await until(
        lambda: (
            parsed(stage, body).prompt_tokens
            == len(speaker.ids(Conversation(messages=body["messages"])))
        )
    )
    assert parsed(stage, body).has_exact_tokens


async def test_mode_bytes_has_no_reader_and_a_document_may_change_its_mind(stage: Stage) -> None:
    await stage.engine("a", Speaker(byte_level()))
    write_files(stage, byte_level())
    await stage.load(prompt_identity=TOKENS)
    pool = stage.router.state.directory.pools["main"]
    assert pool.reader is not None

    await stage.load(version=2)

    assert pool.reader is None
    assert parsed(stage, chat("a", "b")).degraded is None
