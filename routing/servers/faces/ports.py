"""The ports of a process's faces: which are on, opened and closed together."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from routing.servers.errors import openai_error_body
from routing.servers.faces.authz import AuthzPort
from routing.servers.faces.ext_proc.server import health_server, picker_server
from routing.servers.faces.ext_proc.stream import Face
from routing.servers.faces.http2.server import RpcServer
from routing.servers.faces.http2.tls import Certificate
from routing.servers.faces.picks import Picks
from routing.servers.http import HttpServer
from routing.servers.http_parts import ServerLimits
from routing.servers.state import RouterState

PORT_NAMES = ("authz", "ext_proc", "health")
Opened = dict[str, int]
"""Port by the name of the face."""
GATEWAY_IDLE_SECONDS = 3600.0
"""A gateway keeps its connections; one that we close just as it is used again is a failed pick."""


class FaceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Port of each face; 0 is any, `None` leaves the face off."""

    authz: int | None = None
    ext_proc: int | None = None
    health: int | None = None
    is_testing: bool = False
    """Headers of the gateway conformance tests choose endpoints (ext_proc)."""
    observes: bool = False
    """Streams in observability mode are looked at (ext_proc)."""
    tells_scores: bool = False
    """Gateways are told how good each endpoint was (ext_proc)."""
    tls_cert: str | None = None
    """File with a certificate and its chain: ext_proc speaks TLS; together with `tls_key`."""
    tls_key: str | None = None

    def of_process(self, number: int) -> "FaceOptions":
        """Ports of one of several processes, counted from 0: a gateway must tell them apart."""
        ports = {name: getattr(self, name) for name in PORT_NAMES}
        own = {name: port + number if port else port for name, port in ports.items()}
        return msgspec.structs.replace(self, **own)

    def check(self, *, others: Mapping[str, int], processes: int) -> None:
        """Raise ValueError where ports would meet; `others` are the router's own, by name."""
        taken = {port: name for name, port in others.items() if port}
        for number in range(processes):
            own = self.of_process(number)
            for name in PORT_NAMES:
                port = getattr(own, name)
                if port and taken.setdefault(port, name) != name:
                    raise ValueError(
                        f"Port {port} would be taken twice, for {taken[port]} and for process"
                        f" {number} of {name}: each process has a port of its own, counted from"
                        f" the one given. Leave {processes} ports between them."
                    )

    def check_certificate(self) -> None:
        """Raise ValueError for one that cannot be used."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError(
                "--ext-proc-tls-cert and --ext-proc-tls-key are a certificate and its key: give"
                " both or neither."
            )
        if self.tls_cert and self.ext_proc is None:
            raise ValueError(
                "--ext-proc-tls-cert is for the port of ext_proc, which is off: give"
                " --ext-proc-port, too."
            )
        self.certificate()

    def certificate(self) -> Certificate | None:
        """Of ext_proc; `None` where it speaks without TLS. Raises CertificateError."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        return Certificate(Path(self.tls_cert), Path(self.tls_key), now=time.monotonic)

    def again(self, opened: Opened) -> "FaceOptions":
        """The same ports as were opened before: gateways know them by now."""
        return msgspec.structs.replace(self, **opened)


NO_FACES = FaceOptions()
"""All are off."""


class FacePorts:
    """See the module."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._picks = Picks(state)
        self._servers: list[HttpServer | RpcServer] = []

    async def start(self, host: str, options: FaceOptions) -> Opened:
        """Open what is on. Raises OSError for a busy port."""
        opened: Opened = {}
        for name, port, make in (
            ("authz", options.authz, self._authz_server),
            ("ext_proc", options.ext_proc, lambda: self._picker(options)),
            ("health", options.health, lambda: health_server(self._state)),
        ):
            if port is not None:
                server: HttpServer | RpcServer = make()
                self._servers.append(server)
                opened[name] = await server.start(host, port)
        return opened

    def _picker(self, options: FaceOptions) -> RpcServer:
        if options.observes:
            self._state.directory.observe()
        face = Face(
            self._picks,
            is_testing=options.is_testing,
            tells_scores=options.tells_scores,
            observes=options.observes,
        )
        return picker_server(face, certificate=options.certificate())

    def _authz_server(self) -> HttpServer:
        port = AuthzPort(self._picks)
        limits = ServerLimits(
            body_bytes=lambda: self._state.directory.body_bytes,
            gate=port.gate,
            idle_seconds=GATEWAY_IDLE_SECONDS,
            begins_at_once=True,
        )
        return HttpServer(port, limits=limits, error_body=openai_error_body)

    async def stop(self, *, drain_seconds: float) -> None:
        """Let open questions be answered, then close."""
        stops = [server.stop(drain_seconds=drain_seconds) for server in self._servers]
        await asyncio.gather(*stops)
