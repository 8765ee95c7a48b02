"""Asking engines for tokens: any that is ready, and what is no answer."""

import json

import pytest

from routing.identity.scaffold import Question
from routing.servers.engine_tokens import EngineTokens, NoTokensError, base_model
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.scripted import MODEL, Engine, Script, Stage, answers, status_script

TEXT = Question(prompt="hello")


def tells(raw: bytes) -> Script:
    async def respond(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.respond(200, raw)

    return respond


def tokens_of(stage: Stage) -> EngineTokens:
    state = stage.router.state
    return EngineTokens(state, state.directory.pools["main"])


async def test_ids_come_as_four_bytes_each(stage: Stage) -> None:
    await stage.engine("a", tells(b'{"count":2,"tokens":[1,4294967295],"token_strs":null}'))
    await stage.load()

    assert await tokens_of(stage).ids(TEXT) == b"\1\0\0\0\xff\xff\xff\xff"
    assert stage.engines["a"].requests == [json.loads(TEXT.body(MODEL))]


async def test_another_engine_is_asked_when_one_fails(stage: Stage) -> None:
    await stage.engine("a", status_script(500))
    await stage.engine("b", tells(b'{"tokens":[7]}'))
    await stage.load()
    engines = tokens_of(stage)

    for _ in range(3):
        assert await engines.ids(TEXT) == b"\7\0\0\0"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b'{"tokens":"x"}',
        b'{"tokens":[-1]}',
        b'{"tokens":[4294967296]}',
        b'{"tokens":[1e400]}',
        b"\xff",
        b"[" * 100_000,
    ],
)
async def test_garbage_is_no_answer(stage: Stage, raw: bytes) -> None:
    await stage.engine("a", tells(raw))
    await stage.load()

    with pytest.raises(NoTokensError):
        await tokens_of(stage).ids(TEXT)


async def test_without_a_ready_endpoint_nobody_is_asked(stage: Stage) -> None:
    await stage.engine("a", answers)
    await stage.load()
    stage.router.state.directory.drain("a")

    with pytest.raises(NoTokensError):
        await tokens_of(stage).ids(TEXT)
    assert stage.engines["a"].requests == []


async def test_adapters_are_tokenised_as_their_base(stage: Stage) -> None:
    models = [
        {"name": "lora", "max_model_len": 100, "adapter_of": MODEL},
        {"name": MODEL, "max_model_len": 100},
    ]
    await stage.load(models=models)

    assert base_model(stage.router.state.directory.pools["main"]) == MODEL
