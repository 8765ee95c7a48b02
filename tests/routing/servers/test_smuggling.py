"""Requests whose end two readers might see at different places are refused, with what follows."""

import asyncio
import json

import pytest

from tests.routing.servers.client import RawClient
from tests.routing.servers.scripted import CHAT, SECRET, Stage, answers, chat

HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {SECRET}\r\n".encode()
BODY = json.dumps(chat()).encode()
HIDDEN = b"%bcontent-length: %d\r\n\r\n%b" % (HEAD, len(BODY), BODY)
"""A whole request that a proxy before us took for a body."""
CHUNKED = b"transfer-encoding: chunked\r\n"
EMPTY = b"0\r\n\r\n"


def sized(length: bytes | int) -> bytes:
    return b"content-length: %b\r\n" % (length if isinstance(length, bytes) else b"%d" % length)


AMBIGUOUS = {
    "both-lengths": sized(len(BODY)) + CHUNKED,
    "both-lengths-other-order": CHUNKED + sized(len(BODY)),
    "two-equal-lengths": sized(len(BODY)) * 2,
    "two-lengths": sized(len(BODY)) + sized(0),
    "list-of-lengths": sized(b"%d, %d" % (len(BODY), len(BODY))),
    "signed-length": sized(b"+%d" % len(BODY)),
    "hexadecimal-length": sized(b"0x%x" % len(BODY)),
    "length-with-a-letter": sized(b"%dx" % len(BODY)),
    "empty-length": sized(b""),
    "overflowing-length": sized(b"1" * 30),
    "unknown-coding": b"transfer-encoding: xchunked\r\n",
    "chunked-is-not-last": b"transfer-encoding: chunked, identity\r\n",
    "chunked-twice": CHUNKED * 2,
    "coding-in-quotes": b'transfer-encoding: "chunked"\r\n',
    "coding-before-chunked": b"transfer-encoding: gzip, chunked\r\n",
    "space-before-the-colon": b"transfer-encoding : chunked\r\n",
    "folded-coding": b"transfer-encoding:\r\n chunked\r\n",
    "folded-header": b"x-a: 1\r\n x-b: 2\r\n" + sized(len(BODY)),
    "control-character-in-a-name": b"content\x0b-length: 5\r\n",
    "null-in-a-value": b"x-a: 1\x00\r\n" + sized(len(BODY)),
    "bare-return-in-a-value": b"x-a: 1\rcontent-length: 0\r\n" + sized(len(BODY)),
    "no-colon": b"content-length\r\n",
}


@pytest.fixture
async def served(stage: Stage) -> Stage:
    await stage.engine("a", answers)
    await stage.load()
    return stage


async def refused(stage: Stage, data: bytes) -> None:
    """Refused with a sentence, closed, and nothing of it reached an engine."""
    async with RawClient(stage.router.port) as client:
        await client.send(data)
        answer = await client.answer()
        async with asyncio.timeout(5):
            rest = await client.reader.read()

    assert answer.status in (400, 413, 501), (answer.status, answer.body)
    assert answer.headers["connection"] == "close"
    assert answer.json["error"]["message"]
    assert rest == b""
    assert stage.engines["a"].requests == []


@pytest.mark.parametrize("headers", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_a_message_of_two_possible_ends_is_refused(served: Stage, headers: bytes) -> None:
    await refused(served, HEAD + headers + b"\r\n" + BODY + HIDDEN)


BAD_CHUNKS = {
    "no-number": b"x\r\n",
    "negative": b"-1\r\n",
    "signed": b"+5\r\nhello\r\n",
    "prefixed": b"0x5\r\nhello\r\n",
    "overflowing": b"%b\r\n" % (b"f" * 17),
    "space-before": b" 5\r\nhello\r\n",
    "longer-than-said": b"3\r\nhello\r\n",
    "shorter-than-said": b"7\r\nhello\r\n0\r\n\r\n",
    "line-feed-only": b"5\nhello\n0\n\n",
    "return-only": b"5\rhello\r0\r\r",
    "no-end-of-the-last": b"0\r\nx",
    "endless-extension": b"5;" + b"x" * 300_000,
}


@pytest.mark.parametrize("chunks", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
async def test_bad_chunks_are_refused(served: Stage, chunks: bytes) -> None:
    async with RawClient(served.router.port) as client:
        await client.send(HEAD + CHUNKED + b"\r\n" + chunks + EMPTY + HIDDEN)
        answer = await client.answer()

    assert answer.status in (400, 431), (answer.status, answer.body)
    assert served.engines["a"].requests == []
