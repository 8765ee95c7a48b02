"""Both legs of a sidecar's request, and what happens when one fails."""

import asyncio
import json
from typing import Any

import pytest

from routing.core.document import Disaggregation
from routing.engines import sglang, vllm
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import RawClient, message
from tests.routing.servers.faces.pod import NAMED, Pod
from tests.routing.servers.scripted import (
    CHAT,
    MODEL,
    Engine,
    answers,
    chat,
    cuts_in_the_middle,
    hangs,
    status_script,
    streams_forever,
)

TICKET = {"do_remote_prefill": True, "remote_prefill_cached_tokens": 5, "remote_host": "p"}


async def waits_for_its_pair(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """A decode engine whose prompt never comes from where it was told to meet."""
    await (hangs if b"bootstrap_room" in received.body else answers)(engine, received, client)


async def test_the_prompt_is_computed_there_and_decoded_here(pod: Pod) -> None:
    prefill, decode = await pod.engine("p"), await pod.engine("d")
    await pod.start()

    answer = await pod.ask(chat(max_tokens=9), by=pod.at("p"), x_request_id="same")

    assert answer.status == 200
    assert answer.json["choices"][0]["message"]["content"] == "from d"
    first, second = prefill.requests[0], decode.requests[0]
    assert (first["max_tokens"], first["stream"]) == (1, False)
    assert first["kv_transfer_params"]["do_remote_decode"] is True
    assert second == chat(max_tokens=9, kv_transfer_params=TICKET)
    assert prefill.headers[0][b"x-request-id"] == decode.headers[0][b"x-request-id"]
    assert decode.headers[0][b"x-request-id"].startswith(b"same.")


async def test_the_client_sees_the_cached_tokens_of_the_prefill_engine(pod: Pod) -> None:
    await pod.engine("p")
    await pod.engine("d")
    await pod.start()
    wish = {"stream": True, "stream_options": {"include_usage": True}}

    whole = await pod.ask(chat(), by=pod.at("p"))
    stream = await pod.ask(chat(**wish), by=pod.at("p"))

    assert whole.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 5
    usage = json.loads(stream.events[-2].removeprefix("data: "))["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 5


async def test_sglangs_legs_run_at_once_with_one_body(pod: Pod) -> None:
    prefill, decode = await pod.engine("p"), await pod.engine("d")
    await pod.start(kind=sglang.ENGINE)

    answer = await pod.ask(chat(), by=pod.at("p"))

    assert answer.status == 200
    assert prefill.requests == decode.requests
    sent = decode.requests[0]
    assert (sent["bootstrap_host"], sent["bootstrap_port"]) == ("127.0.0.1", 8998)
    assert 0 <= sent["bootstrap_room"] < 2**63


async def test_when_a_prefill_endpoint_is_gone_the_next_one_computes(pod: Pod) -> None:
    prefill = await pod.engine("p")
    await pod.engine("d")
    await pod.start()

    answer = await pod.ask(chat(), by=f"127.0.0.1:1,{pod.at('p')}")

    assert answer.status == 200
    assert len(prefill.requests) == 1
    assert "x-consort-degraded" not in answer.headers


@pytest.mark.parametrize("kind", [vllm.ENGINE, sglang.ENGINE], ids=["nixl", "sglang"])
@pytest.mark.parametrize("stream", [False, True])
async def test_when_all_fail_the_prompt_is_computed_here_and_said(
    pod: Pod, kind: Any, stream: bool
) -> None:
    await pod.engine("p", status_script(503))
    decode = await pod.engine("d", waits_for_its_pair)
    await pod.start(kind=kind)

    answer = await pod.ask(chat(stream=stream), by=f"127.0.0.1:1,{pod.at('p')}")

    assert answer.status == 200
    assert answer.headers["x-consort-degraded"] == "prefill-failed-computed-locally"
    assert decode.requests[-1] == chat(stream=stream)


async def test_a_long_prompt_is_not_computed_here_silently(pod: Pod) -> None:
    await pod.engine("p", status_script(503))
    decode = await pod.engine("d")
    await pod.start(local_prefill_bytes=1000)
    long = chat(messages=[{"role": "user", "content": "x" * 1000}])

    refused = await pod.ask(long, by=pod.at("p"))
    served = await pod.ask(chat(), by=pod.at("p"))

    assert (refused.status, refused.json["error"]["code"]) == (503, "prefill-unavailable")
    assert refused.headers["retry-after"]
    assert served.status == 200
    assert decode.requests == [chat()]


@pytest.mark.parametrize("kind", [vllm.ENGINE, sglang.ENGINE], ids=["nixl", "sglang"])
async def test_what_the_prefill_engine_refuses_is_the_clients_answer(pod: Pod, kind: Any) -> None:
    await pod.engine("p", status_script(400, b'{"error":{"message":"too long"}}'))
    await pod.engine("d", answers if kind is vllm.ENGINE else hangs)
    await pod.start(kind=kind)

    answer = await pod.ask(chat(), by=pod.at("p"))

    assert (answer.status, answer.json["error"]["message"]) == (400, "too long")


async def test_a_prefill_engine_that_began_is_not_asked_a_second_time_elsewhere(pod: Pod) -> None:
    first, second = await pod.engine("p", status_script(500)), await pod.engine("q")
    await pod.engine("d")
    await pod.start()

    answer = await pod.ask(chat(), by=f"{pod.at('p')},{pod.at('q')}")

    assert answer.headers["x-consort-degraded"] == "prefill-failed-computed-locally"
    assert (len(first.requests), second.requests) == (1, [])


async def test_a_decode_engine_that_does_not_fetch_in_time_is_504(pod: Pod) -> None:
    await pod.engine("p")
    await pod.engine("d", hangs)
    await pod.start(disaggregation=Disaggregation(transfer_timeout_seconds=0.05))

    answer = await pod.ask(chat(stream=True), by=pod.at("p"))

    assert (answer.status, answer.json["error"]["code"]) == (504, "engine-too-slow")


async def test_a_stream_that_breaks_ends_in_an_error_event(pod: Pod) -> None:
    await pod.engine("p")
    await pod.engine("d", cuts_in_the_middle)
    await pod.start()

    answer = await pod.ask(chat(stream=True), by=pod.at("p"))

    assert answer.status == 200
    assert json.loads(answer.events[-1].removeprefix("data: "))["error"]["code"] == (
        "stream-interrupted"
    )


@pytest.mark.parametrize("leg", ["p", "d"])
async def test_a_client_that_leaves_frees_the_engine_that_works_for_it(pod: Pod, leg: str) -> None:
    engines = {
        "p": await pod.engine("p", hangs if leg == "p" else answers),
        "d": await pod.engine("d", streams_forever),
    }
    await pod.start()

    async with RawClient(pod.port) as client:
        await client.send(message("POST", CHAT, chat(stream=True), headers={NAMED: pod.at("p")}))
        async with asyncio.timeout(5):
            while not engines[leg].requests:
                await asyncio.sleep(0.005)

    async with asyncio.timeout(5):
        await engines[leg].gone.wait()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, chat(n=2)),
        ("/v1/completions", {"model": MODEL, "prompt": ["one", "two"]}),
        ("/v1/completions", {"model": MODEL, "prompt": [[1], [2]]}),
    ],
)
async def test_what_is_more_than_one_sequence_is_not_split(
    pod: Pod, path: str, body: dict[str, Any]
) -> None:
    """One ticket names the blocks of one prompt, and they are fetched once."""
    prefill, decode = await pod.engine("p"), await pod.engine("d")
    await pod.start()

    answer = await pod.ask(body, path=path, by=pod.at("p"))

    assert (answer.status, prefill.requests, decode.requests) == (200, [], [body])


@pytest.mark.parametrize("body", [b"[]", b"5", b'"x"', b"", b'{"n": "x"}', b'{"prompt": {}}'])
async def test_what_cannot_be_read_is_the_engines_to_refuse(pod: Pod, body: bytes) -> None:
    await pod.engine("p")
    decode = await pod.engine("d", status_script(400))
    decode.reads_json = False
    await pod.start()

    assert (await pod.ask(body, path="/v1/completions", by=pod.at("p"))).status == 400
