"""The HTTP server: bounds, keep-alive, pipelining, clients that leave or read slowly."""

import asyncio

import pytest

from routing.servers.http import Connection, HttpServer
from routing.servers.http_parts import HttpRequest, ServerLimits
from tests.routing.servers.client import RawClient, Start, echo, message, request


async def test_requests_follow_each_other_on_one_connection(start: Start) -> None:
    port = await start(echo)

    async with RawClient(port) as client:
        first = await client.request("GET", "/a")
        second = await client.request("POST", "/b", b"body")

    assert (first.body, second.body) == (b"GET /a", b"POST /bbody")
    assert "date" in first.headers


async def test_a_chunked_body_in_several_reads_is_joined(start: Start) -> None:
    port = await start(echo)

    async with RawClient(port) as client:
        await client.send(
            b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
        )
        await client.send(b"4\r\ndefg\r\n0\r\n\r\n")
        answer = await client.answer()

    assert answer.body == b"POST /abcdefg"


async def test_a_body_declared_too_long_is_refused_before_it_is_sent(start: Start) -> None:
    port = await start(echo, body_bytes=10)

    async with RawClient(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 11\r\n\r\n")
        answer = await client.answer()

    assert answer.status == 413
    assert answer.headers["connection"] == "close"
    assert b"at most 10 bytes" in answer.body


async def test_a_chunked_body_is_refused_when_it_passes_the_bound(start: Start) -> None:
    port = await start(echo, body_bytes=10)

    async with RawClient(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n")
        await client.send(b"6\r\nabcdef\r\n" * 2)
        answer = await client.answer()

    assert answer.status == 413


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n"
            b"1\r\na\r\n0\r\nx: " + b"y" * 300_000,
            431,
            id="endless-trailer",
        ),
        pytest.param(b"hello\r\n\r\n", 400, id="no-http"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: t\r\nx: " + b"y" * 70_000, 431, id="endless-header"),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\n"
            b"transfer-encoding: chunked\r\n\r\n",
            400,
            id="two-lengths",
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
            400,
            id="upgrade",
        ),
    ],
)
async def test_what_is_not_a_request_is_refused(start: Start, data: bytes, status: int) -> None:
    port = await start(echo)

    async with RawClient(port) as client:
        await client.send(data)
        answer = await client.answer()

    assert answer.status == status


async def test_a_client_that_leaves_cancels_its_request(start: Start) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(received: HttpRequest, client: Connection) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    port = await start(wait)

    async with RawClient(port) as client:
        await client.send(message("GET", "/"))
        await started.wait()

    async with asyncio.timeout(5):
        await cancelled.wait()


async def test_a_slow_reader_pauses_what_produces_for_it(start: Start) -> None:
    class Source:
        def __init__(self) -> None:
            self.paused, self.resumed = asyncio.Event(), asyncio.Event()

        def pause_reading(self) -> None:
            self.paused.set()

        def resume_reading(self) -> None:
            self.resumed.set()

    source, go_on = Source(), asyncio.Event()

    async def flood(received: HttpRequest, client: Connection) -> None:
        client.producer = source
        client.open_stream(200, content_type=b"text/plain")
        while not source.paused.is_set():
            client.send(b"x" * 65536)
            await asyncio.sleep(0)
        await go_on.wait()
        await source.resumed.wait()
        client.close_stream()

    port = await start(flood)

    async with RawClient(port) as client:
        await client.send(message("GET", "/"))
        await source.paused.wait()
        go_on.set()
        answer = await client.answer()

    assert source.resumed.is_set()
    assert set(answer.body) == {ord("x")}


async def test_a_failing_handler_answers_500_and_closes(start: Start) -> None:
    async def fail(received: HttpRequest, client: Connection) -> None:
        raise RuntimeError("broken on purpose")

    port = await start(fail)

    answer = await request(port, "GET", "/")

    assert answer.status == 500
    assert answer.headers["connection"] == "close"


async def test_a_failure_in_the_middle_of_a_stream_is_not_a_whole_answer(start: Start) -> None:
    async def fail(received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/plain")
        client.send(b"half")
        await asyncio.sleep(0.01)
        raise RuntimeError("broken on purpose")

    port = await start(fail)

    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await request(port, "GET", "/")


async def test_old_clients_get_a_stream_ended_by_closing(start: Start) -> None:
    async def stream(received: HttpRequest, client: Connection) -> None:
        client.open_stream(200, content_type=b"text/plain")
        client.send(b"one")
        client.send(b"two")
        client.close_stream()

    port = await start(stream)

    async with RawClient(port) as client:
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        await client.head()
        body = await client.reader.read()

    assert body == b"onetwo"


async def test_connections_beyond_the_bound_are_closed(start: Start) -> None:
    port = await start(echo, connections=1)

    async with RawClient(port) as client:
        first = await client.request("GET", "/")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await request(port, "GET", "/")

    assert first.status == 200


async def test_stopping_lets_a_running_request_end_and_idle_connections_close() -> None:
    started = asyncio.Event()

    async def slow(received: HttpRequest, client: Connection) -> None:
        started.set()
        await asyncio.sleep(0.05)
        client.respond(200, b"done")

    server = HttpServer(
        slow, limits=ServerLimits(body_bytes=lambda: 10), error_body=lambda status, text: b""
    )
    port = await server.start("127.0.0.1", 0)

    async with RawClient(port) as idle, RawClient(port) as busy:
        await busy.send(message("GET", "/"))
        await started.wait()
        stopping = asyncio.create_task(server.stop(drain_seconds=5))
        answer = await busy.answer()
        end = await idle.reader.read()
        await stopping

    assert (answer.body, end) == (b"done", b"")
    assert not server.connections


async def test_bodies_of_all_requests_together_are_bounded_and_given_back(start: Start) -> None:
    go_on = asyncio.Event()

    async def hold(received: HttpRequest, client: Connection) -> None:
        await go_on.wait()
        client.respond(200, b"done")

    port = await start(hold, held_bytes=150)

    async with RawClient(port) as first:
        await first.send(message("POST", "/", b"x" * 100))
        refused = await request(port, "POST", "/", b"x" * 100)
        go_on.set()
        held = await first.answer()
        later = [(await first.request("POST", "/", b"x" * 100)).status for _ in range(3)]

    assert (refused.status, held.status, later) == (503, 200, [200, 200, 200])


async def test_a_client_that_leaves_in_the_middle_gives_its_bytes_back(start: Start) -> None:
    port = await start(echo, held_bytes=150)

    for _ in range(3):
        async with RawClient(port) as client:
            await client.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 120\r\n\r\n")
            await client.send(b"x" * 110)
    async with asyncio.timeout(5):
        while (answer := await request(port, "POST", "/", b"x" * 120)).status != 200:
            await asyncio.sleep(0.01)

    assert answer.status == 200


async def test_a_reader_that_never_takes_the_end_of_an_answer_is_cut(start: Start) -> None:
    served: list[Connection] = []

    async def large(received: HttpRequest, client: Connection) -> None:
        served.append(client)
        client.respond(200, b"x" * 20_000_000)

    port = await start(large, flush_seconds=0)

    async with RawClient(port) as client:
        await client.send(message("GET", "/"))
        await client.head()
        async with asyncio.timeout(10):
            while not served[0].closed:
                await asyncio.sleep(0.01)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            async with asyncio.timeout(5):
                await client.reader.readexactly(20_000_000)


async def test_a_request_that_never_arrives_completely_is_ended(start: Start) -> None:
    port = await start(echo, request_seconds=0)

    async with RawClient(port) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\nab")
        answer = await client.answer()

    assert answer.status == 408
