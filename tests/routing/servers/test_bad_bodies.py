"""Hostile and huge requests at the inference port: the right status, and nobody else disturbed."""

import asyncio
import gzip
import json
from itertools import pairwise
from typing import Any

import pytest

from tests.routing.servers.client import RawClient
from tests.routing.servers.scripted import CHAT, MODEL, SECRET, Stage, answers, chat

HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {SECRET}\r\n"
MIB = 1024 * 1024


def with_text(size: int) -> bytes:
    return json.dumps(chat(messages=[{"role": "user", "content": "x" * size}])).encode()


async def ready(stage: Stage, **changes: Any) -> None:
    await stage.engine("a", answers)
    await stage.load(**changes)


async def send_chunks(client: RawClient, parts: list[bytes], trailers: bytes = b"") -> None:
    await client.send(f"{HEAD}transfer-encoding: chunked\r\n\r\n".encode())
    for part in parts:
        await client.send(b"%x\r\n%b\r\n" % (len(part), part))
    await client.send(b"0\r\n%b\r\n" % trailers)


@pytest.mark.lesson("B01")
@pytest.mark.lesson("B04")
@pytest.mark.parametrize("size", [0, 128 * 1024 + 1, MIB + 1, 30 * MIB])
@pytest.mark.parametrize("trailers", [b"", b"x-checksum: 5\r\nauthorization: Bearer no\r\n"])
async def test_bodies_in_chunks_reach_the_engine_whole(
    stage: Stage, size: int, trailers: bytes
) -> None:
    await ready(stage)
    body = with_text(size)
    # Cut inside words, numbers and escapes.
    cuts = [0, 1, 9, len(body) // 2, len(body) - 3, len(body)]
    parts = [body[start:end] for start, end in pairwise(cuts)]

    async with RawClient(stage.router.port) as client:
        await send_chunks(client, [part for part in parts if part], trailers)
        answer = await client.answer()

    assert answer.status == 200
    engine = stage.engines["a"]
    assert engine.requests == [json.loads(body)]
    assert engine.headers[0][b"content-length"] == b"%d" % len(body)


@pytest.mark.lesson("B02")
async def test_hop_by_hop_and_control_headers_of_a_client_stay_here(stage: Stage) -> None:
    await ready(stage)
    hop = {
        "transfer-encoding": "chunked",
        "te": "trailers",
        "connection": "keep-alive, x-named",
        "x-named": "1",
        "x-llm-d-slo-ttft-ms": "5000",
        "x-gateway-destination-endpoint": "10.0.0.1:80",
        "x-consort-priority": "-1",
        "x-session-id": "s",
        "x-data-parallel-rank": "3",
        "authorization": f"Bearer {SECRET}",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in hop.items())
    body = with_text(1)

    async with RawClient(stage.router.port) as client:
        await client.send(f"POST {CHAT} HTTP/1.1\r\nhost: t\r\n{head}\r\n".encode())
        await client.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        answer = await client.answer()

    assert answer.status == 200
    assert not set(stage.engines["a"].headers[0]) & {name.encode() for name in hop}
    assert "transfer-encoding" not in answer.headers


@pytest.mark.lesson("B08")
async def test_the_bound_of_bodies_is_high_and_the_documents(stage: Stage) -> None:
    await ready(stage)
    assert (await stage.ask(with_text(31 * MIB))).status == 200

    await stage.load(version=2, limits={"body_bytes": 40 * MIB})

    assert (await stage.ask(with_text(39 * MIB))).status == 200
    assert (await stage.ask(with_text(41 * MIB))).status == 413


async def test_a_body_of_100_mb_is_413_before_a_byte_of_it_is_read(stage: Stage) -> None:
    await ready(stage)

    async with RawClient(stage.router.port) as client:
        await client.send(f"{HEAD}content-length: {100 * MIB}\r\n\r\n".encode())
        answer = await client.answer()

    assert answer.status == 413
    assert stage.router._public.held_bytes == 0


async def test_an_endless_body_is_413_at_its_bound(stage: Stage) -> None:
    await ready(stage, limits={"body_bytes": MIB})

    async with RawClient(stage.router.port) as client:
        await client.send(f"{HEAD}transfer-encoding: chunked\r\n\r\n".encode())
        for _ in range(20):
            await client.send(b"10000\r\n%b\r\n" % (b"x" * 65536))
        answer = await client.answer()

    assert answer.status == 413
    assert stage.router._public.held_bytes == 0


@pytest.mark.parametrize(
    "head",
    [
        "x-a: " + "y" * 70_000 + "\r\n",
        "".join(f"x-{number}: y\r\n" for number in range(20_000)),
        "cookie: a=b\r\n" * 8_000,
    ],
    ids=["one-long", "many", "repeated"],
)
async def test_a_flood_of_headers_is_431(stage: Stage, head: str) -> None:
    await ready(stage)

    async with RawClient(stage.router.port) as client:
        await client.send(f"{HEAD}{head}".encode())
        answer = await client.answer()

    assert answer.status == 431


@pytest.mark.parametrize(
    "head",
    [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: -5\r\n",
        "content-length: 99999999999999999999999\r\n",
        "transfer-encoding: gzip\r\n",
        "bad header\r\n",
        "x\x00y: z\r\n",
    ],
)
async def test_a_message_of_unclear_length_is_refused(stage: Stage, head: str) -> None:
    await ready(stage)

    async with RawClient(stage.router.port) as client:
        await client.send(f"{HEAD}{head}\r\nhello".encode("latin-1"))
        answer = await client.answer()

    assert answer.status in (400, 413)
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd", "GZIP", "identity, gzip", ""])
async def test_an_encoding_is_not_read(stage: Stage, coding: str) -> None:
    await ready(stage)

    answer = await stage.ask(gzip.compress(with_text(9)), content_encoding=coding)

    assert answer.status == 415
    assert stage.engines["a"].requests == []


WRONG = {
    "deep": b'{"model":"%b","messages":%b}' % (MODEL.encode(), b"[" * 10**6),
    "deep elsewhere": b'{"x":%b%b,"model":"m"}' % (b"[" * 10**6, b"]" * 10**6),
    "not text": b'{"model":"%b","messages":[{"role":"user","content":"\xff"}]}' % MODEL.encode(),
    "not text elsewhere": b'{"model":"%b","messages":[],"x":"\xc3("}' % MODEL.encode(),
    "not a number": b'{"model":"%b","messages":[],"temperature":NaN}' % MODEL.encode(),
    "huge number": b'{"model":"%b","messages":[],"max_tokens":%b}' % (MODEL.encode(), b"9" * 10**5),
    "wrong type": b'{"model":["%b"],"messages":[]}' % MODEL.encode(),
    "no object": b"[1,2,3]",
    "nothing": b"",
}


@pytest.mark.parametrize("raw", WRONG.values(), ids=WRONG.keys())
async def test_a_wrong_body_is_400_and_reaches_no_engine(stage: Stage, raw: bytes) -> None:
    await ready(stage)

    answer = await stage.ask(raw)

    assert answer.status == 400
    assert len(answer.body) < 1000
    assert stage.engines["a"].requests == []
    assert (await stage.ask(chat())).status == 200


async def test_the_model_that_is_decided_on_is_the_one_the_engine_reads(stage: Stage) -> None:
    await ready(stage)
    twice = b'{"model":"nobody","model":"%b","messages":[]}' % MODEL.encode()
    hidden = b'{"model":"%b","messages":[],"mod\\u0065l":"nobody"}' % MODEL.encode()
    fetching = b'{"model":"%b","messages":[],"kv_transfer_p\\u0061rams":{"x":1}}' % MODEL.encode()

    assert (await stage.ask(twice)).status == 200
    assert (await stage.ask(hidden)).status == 404
    assert (await stage.ask(fetching)).status == 400
    assert stage.engines["a"].requests == [{"model": MODEL, "messages": []}]


async def test_ten_thousand_messages_disturb_nobody(stage: Stage) -> None:
    await ready(stage)
    many = chat(messages=[{"role": "user", "content": f"number {i}"} for i in range(10_000)])

    found = await asyncio.gather(*(stage.ask(many if i % 4 == 0 else chat()) for i in range(12)))

    assert {answer.status for answer in found} == {200}
    assert {answer.json["choices"][0]["message"]["content"] for answer in found} == {"from a"}
    await stage.no_leases()
