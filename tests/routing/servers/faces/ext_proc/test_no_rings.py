"""What a stream leaves behind is freed at once, without the collector of cycles."""

import asyncio
import gc
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import hpack
import pytest
import uvloop

from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.server import PROCESS
from routing.servers.faces.http2 import frames
from routing.servers.faces.ports import FaceOptions
from tests.routing.servers.faces.ext_proc.gateway import (
    BUFFERED,
    FULL_DUPLEX,
    request_body,
    request_headers,
    response_body,
    response_headers,
)
from tests.routing.servers.scripted import Stage, chat, event

STREAMS = 40
FEW = STREAMS // 4
"""Unreachable objects that the background may make meanwhile; one ring of a stream is more."""
BODY = request_body(json.dumps(chat(stream=True)).encode())
SEEN = request_headers(answer_mode=FULL_DUPLEX)
ANSWER = [
    response_headers(content_type="text/event-stream"),
    response_body(event({"content": "a"}), is_last=False),
]
CASES: dict[str, list[ProcessingRequest]] = {
    "whole": [SEEN, BODY, *ANSWER, response_body(b"data: [DONE]\n\n")],
    "held": [request_headers(), BODY],
    "buffered": [request_headers(mode=BUFFERED), BODY],
    "broken-in-the-answer": [SEEN, BODY, *ANSWER],
    "broken-in-the-request": [SEEN],
    "refused": [request_headers(secret=""), BODY],
    "out-of-order": [BODY],
}
ENDS = ("half-closed", "reset", "cut")


def call(messages: list[ProcessingRequest], end: str) -> bytes:
    """A connection with one stream, as bytes."""
    headers = [(":method", "POST"), (":scheme", "http"), (":path", PROCESS), (":authority", "a")]
    told = frames.PREFACE + frames.settings({})
    told += frames.frame(frames.HEADERS, frames.END_HEADERS, 1, hpack.Encoder().encode(headers))
    for message in messages:
        raw = message.SerializeToString()
        framed = b"\0" + len(raw).to_bytes(4, "big") + raw
        told += frames.frame(frames.DATA, 0, 1, framed)
    if end == "half-closed":
        told += frames.frame(frames.DATA, frames.END_STREAM, 1)
    elif end == "reset":
        told += frames.reset(1, frames.Code.CANCEL)
    return told + frames.frame(frames.PING, 0, 0, b"the  end")


async def ask(port: int, raw: bytes) -> None:
    """Over a bare socket: asyncio's streams leave rings of their own."""
    loop, got = asyncio.get_running_loop(), b""
    with socket.socket() as client:
        client.settimeout(0)
        async with asyncio.timeout(10):
            await loop.sock_connect(client, ("127.0.0.1", port))
            await loop.sock_sendall(client, raw)
            while b"the  end" not in got:
                got += await loop.sock_recv(client, 65536)


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("case", CASES)
def test_a_stream_leaves_no_rings(tmp_path: Path, case: str, end: str) -> None:
    async def asked() -> int:
        stage = Stage(tmp_path)
        await stage.start_router(faces=FaceOptions(ext_proc=0))
        try:
            await stage.engine("a")
            await stage.load()
            port, raw = stage.router.face_ports[0]["ext_proc"], call(CASES[case], end)
            for _ in range(4):
                await ask(port, raw)
            gc.collect()
            for _ in range(STREAMS):
                await ask(port, raw)
            await asyncio.sleep(0.02)
            return gc.collect()
        finally:
            await stage.stop()

    assert uvloop.run(asked()) <= FEW
