"""Turns on one connection: pipelining, asking before sending, HEAD, trailers."""

import asyncio

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.client import RawClient, Start, echo, message, request


async def test_pipelined_requests_are_answered_in_order(start: Start) -> None:
    async def slow_first(received: HttpRequest, client: Connection) -> None:
        if received.path == "/0":
            await asyncio.sleep(0.02)
        client.respond(200, received.path.encode())

    port = await start(slow_first)

    async with RawClient(port) as client:
        await client.send(b"".join(message("GET", f"/{number}") for number in range(5)))
        bodies = [(await client.answer()).body for _ in range(5)]

    assert bodies == [b"/0", b"/1", b"/2", b"/3", b"/4"]


async def test_a_client_that_asks_first_is_told_to_send_or_not(start: Start) -> None:
    port = await start(echo, body_bytes=10)
    head = "POST / HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n"

    async with RawClient(port) as client:
        await client.send(head.format(4).encode())
        status, _ = await client.head()
        await client.send(b"abcd")
        answer = await client.answer()
    async with RawClient(port) as client:
        await client.send(head.format(40).encode())
        refused = await client.answer()

    assert (status, answer.body, refused.status) == (100, b"POST /abcd", 413)


async def test_a_pipelined_client_that_asks_first_is_told_after_the_answer_before(
    start: Start,
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def stream_first(received: HttpRequest, client: Connection) -> None:
        if received.method == "POST":
            client.respond(200, received.body)
            return
        client.open_stream(200, content_type=b"text/plain")
        client.send(b"one")
        begun.set()
        await go_on.wait()
        client.send(b"two")
        client.close_stream()

    port = await start(stream_first)

    async with RawClient(port) as client:
        await client.send(message("GET", "/"))
        await begun.wait()
        await client.send(
            b"POST / HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n"
        )
        # The server has read what was sent before, once it answers somebody else.
        await request(port, "POST", "/", b"other")
        go_on.set()
        first = await client.answer()
        status, _ = await client.head()
        await client.send(b"abcd")
        second = await client.answer()

    assert (first.body, status, second.body) == (b"onetwo", 100, b"abcd")


async def test_the_answer_to_head_has_no_body(start: Start) -> None:
    port = await start(echo)

    async with RawClient(port) as client:
        await client.send(message("HEAD", "/a") + message("GET", "/b"))
        _, headers = await client.head()
        second = await client.answer()

    assert headers["content-length"] == str(len("HEAD /a"))
    assert second.body == b"GET /b"


async def test_trailers_do_not_become_headers(start: Start) -> None:
    async def tell(received: HttpRequest, client: Connection) -> None:
        client.respond(200, received.headers.get(b"authorization", b"none"))

    port = await start(tell)

    async with RawClient(port) as client:
        await client.send(
            b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
            b"1\r\na\r\n0\r\nauthorization: Bearer x\r\n\r\n"
        )
        answer = await client.answer()

    assert answer.body == b"none"


async def test_a_client_that_asks_and_never_reads_is_not_answered_without_end(
    start: Start,
) -> None:
    answered = 0

    async def large(received: HttpRequest, client: Connection) -> None:
        nonlocal answered
        answered += 1
        client.respond(200, b"x" * 1_000_000)

    port = await start(large)

    async with RawClient(port) as client:
        await client.send(message("GET", "/") * 100)
        # Others are served meanwhile, so the server had its chance to go on.
        for _ in range(20):
            await request(port, "GET", "/")
        unread = answered - 20
        bodies = [len((await client.answer()).body) for _ in range(100)]

    assert unread < 50
    assert bodies == [1_000_000] * 100
