"""What a request says wrong is answered as vLLM answers it."""

from typing import Any

import httpx
import pytest

from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, chat, completion, sample, shape, url

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "param"),
    [
        (COMPLETIONS, {"model": "nope", "prompt": "x"}, 404, "NotFoundError", "model"),
        (CHAT, {"model": MODEL, "messages": "x"}, 400, "Bad Request", "body.messages"),
        (CHAT, {"model": MODEL, "messages": []}, 400, "BadRequestError", "messages"),
        (CHAT, {"model": MODEL}, 400, "Bad Request", "body.messages"),
        (CHAT, chat(max_tokens="8"), 400, "Bad Request", "body.max_tokens"),
        (CHAT, chat(max_tokens=True), 400, "Bad Request", "body.max_tokens"),
        (CHAT, chat(max_tokens=0), 400, "BadRequestError", "max_tokens"),
        (CHAT, chat(max_tokens=40_000), 400, "BadRequestError", "max_tokens"),
        (CHAT, chat(n=0), 400, "BadRequestError", "n"),
        (CHAT, chat(n=129), 400, "BadRequestError", "n"),
        (CHAT, chat(top_logprobs=2), 400, "BadRequestError", "top_logprobs"),
        (COMPLETIONS, completion(logprobs=21), 400, "BadRequestError", "logprobs"),
        (CHAT, chat(stop=[""]), 400, "BadRequestError", "stop"),
        (CHAT, chat(stop=5), 400, "Bad Request", "body.stop"),
        (CHAT, chat(stream="yes"), 400, "Bad Request", "body.stream"),
        (COMPLETIONS, completion([300] * 40_000), 400, "BadRequestError", "input_tokens"),
        (COMPLETIONS, completion([-1]), 400, "Bad Request", "body.prompt"),
        (COMPLETIONS, completion(""), 400, "BadRequestError", "prompt"),
        (COMPLETIONS, completion(None), 400, "Bad Request", "body.prompt"),
        (
            COMPLETIONS,
            completion(kv_transfer_params={"do_remote_prefill": True}),
            400,
            "BadRequestError",
            "kv_transfer_params",
        ),
    ],
)
async def test_what_is_wrong_is_answered_in_vllms_form(
    path: str,
    body: dict[str, Any],
    status: int,
    kind: str,
    param: str,
    start_engine: StartEngine,
    client: httpx.AsyncClient,
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, path), json=body)

    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == (kind, param, status)
    assert shape(answer.json()) == shape(sample("err_unknown_model")["response"])


async def test_an_unknown_model_has_the_captured_sentence(
    start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, COMPLETIONS), json={"model": "nope", "prompt": "x"})

    captured = sample("err_unknown_model")["response"]["error"]["message"]
    assert answer.json()["error"]["message"] == captured.replace("tiny", MODEL)


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b""])
async def test_a_body_that_is_no_json_object_is_a_bad_request(
    body: bytes, start_engine: StartEngine, client: httpx.AsyncClient
) -> None:
    engine = await start_engine()

    answer = await client.post(url(engine, CHAT), content=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "Bad Request"
