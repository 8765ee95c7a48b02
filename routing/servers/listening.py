"""Opening a port, with TLS or without, so that its server need not know which."""

import asyncio
from collections.abc import Callable
from typing import cast

from routing.servers.faces.http2.handshakes import MOST_HANDSHAKES, TlsListener
from routing.servers.faces.http2.tls import Certificate

HTTP = "http/1.1"
"""What TLS agrees on by name (ALPN); a client that names nothing is served as well."""

Listener = asyncio.Server | TlsListener


async def listen(
    make: Callable[[], asyncio.Protocol], host: str, port: int, certificate: Certificate | None
) -> tuple[Listener, int]:
    """Listen; returns also the port, which the kernel chooses for 0. Raises OSError."""
    if certificate:
        listener = TlsListener(certificate, make, most=MOST_HANDSHAKES)
        return listener, await listener.start(host, port)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, host, port, backlog=1024, reuse_address=True)
    return server, cast(int, server.sockets[0].getsockname()[1])
