"""A server whose connections are handed to it."""

import socket
from collections.abc import AsyncIterator

import pytest

from routing.servers.handed import HandedServer
from routing.servers.http_parts import ServerLimits
from tests.routing.servers.client import RawClient, echo


@pytest.fixture
async def handed() -> AsyncIterator[tuple[HandedServer, socket.socket]]:
    server = HandedServer(
        echo,
        limits=ServerLimits(body_bytes=lambda: 1000),
        error_body=lambda status, text: f"{status}|{text}".encode(),
    )
    giving, taking = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.start_handed(taking)
    yield server, giving
    await server.stop(drain_seconds=0.1)
    giving.close()


def listening() -> socket.socket:
    made = socket.create_server(("127.0.0.1", 0))
    made.settimeout(5)
    return made


async def test_connections_that_are_handed_over_are_served(
    handed: tuple[HandedServer, socket.socket],
) -> None:
    server, giving = handed
    with listening() as port:
        for number in range(5):
            async with RawClient(port.getsockname()[1]) as client:
                accepted, _ = port.accept()
                socket.send_fds(giving, [b"c"], [accepted.fileno()])
                accepted.close()

                answer = await client.request("POST", f"/{number}", b"hello")

                assert (answer.status, answer.body) == (200, b"POST /%dhello" % number)

    assert server.taken == 5


async def test_what_was_handed_over_before_the_end_is_answered(
    handed: tuple[HandedServer, socket.socket],
) -> None:
    server, giving = handed
    with listening() as port:
        async with RawClient(port.getsockname()[1]) as client:
            await client.send(b"GET /late HTTP/1.1\r\nhost: t\r\n\r\n")
            accepted, _ = port.accept()
            socket.send_fds(giving, [b"c"], [accepted.fileno()])
            accepted.close()

            await server.stop(drain_seconds=5.0)

    assert server.taken == 1


async def test_when_the_supervisor_is_gone_nothing_more_is_taken(
    handed: tuple[HandedServer, socket.socket],
) -> None:
    server, giving = handed

    giving.close()
    server._take()

    assert server._source is None
