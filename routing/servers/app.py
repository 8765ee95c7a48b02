"""The composition of one router process: made, started and stopped in one place.

`Serving` is what every process has, whoever owns its ports: a router by itself (`Router`, below) or
one of several processes behind a supervisor (`routing.servers.child`).
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from routing.servers import clock
from routing.servers.admin import AdminPort
from routing.servers.decisions import DecisionRing
from routing.servers.documents import Directory
from routing.servers.draining import Drainer
from routing.servers.errors import openai_error_body, problem_body
from routing.servers.events import EventStreams
from routing.servers.faces.http2.tls import Certificate
from routing.servers.faces.ports import NO_FACES, FaceOptions, FacePorts, Opened
from routing.servers.gossip import Gossip
from routing.servers.http import HttpServer
from routing.servers.http_parts import ServerLimits
from routing.servers.metrics import RouterMetrics
from routing.servers.peer_port import Peering, PeerPort
from routing.servers.public import PublicPort
from routing.servers.scrape import Scraper
from routing.servers.speeds_file import SpeedsFile
from routing.servers.spool import SEGMENT_SECONDS, UsageSink, UsageSpool
from routing.servers.state import RouterState
from routing.servers.tokenising import Tokenisers
from routing.servers.upstream import UpstreamPool
from routing.servers.warming import Warmer

SOFTWARE = "0.1.0"
"""Version of the project; a test compares it with pyproject.toml."""
ADMIN_BODY_BYTES = 8 * 1024 * 1024 + 1
"""One more than a document may have, so that the document's own error is given."""

Server = TypeVar("Server", bound=HttpServer)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterOptions:
    """What a router is told at its start."""

    name: str
    state_dir: Path
    """Must be locked by the caller, see `files.claim_folder`."""
    admin_token: bytes
    host: str = "127.0.0.1"
    port: int = 0
    admin_port: int = 0
    admin_certificate: Certificate | None = None
    """The admin port speaks TLS with it; without TLS it belongs on loopback."""
    spool_bytes: int = 512 * 2**20
    segment_seconds: float = SEGMENT_SECONDS
    drain_seconds: float = 8.0
    tokenizers_dir: Path | None = None
    """A folder of tokenizer files per model; in the state folder if absent."""
    peering: Peering | None = None
    """With which other routers knowledge is shared."""
    faces: FaceOptions = NO_FACES
    """Ports for gateways."""

    @property
    def tokenizers(self) -> Path:
        """Where tokenizer files are."""
        return self.tokenizers_dir or self.state_dir / "tokenizers"


class Serving:
    """State of a process that serves requests, and what works on it in the background."""

    def __init__(
        self,
        *,
        name: str,
        directory: Directory,
        spool: UsageSink,
        decisions: DecisionRing,
        drain_seconds: float,
        tokenizers_dir: Path,
    ) -> None:
        self.state = RouterState(
            name=name,
            software=SOFTWARE,
            started_at=clock.unix_now(),
            directory=directory,
            spool=spool,
            upstreams=UpstreamPool(),
            metrics=RouterMetrics(),
            decisions=decisions,
        )
        self.drain_seconds = drain_seconds
        self._scraper = Scraper(self.state)
        self._warmer = Warmer(self.state)
        self._drainer = Drainer(self.state)
        self._tokenisers = Tokenisers(self.state, tokenizers_dir)
        self.events = EventStreams(self.state)
        self.faces = FacePorts(self.state)
        self._speeds: SpeedsFile | None = None
        self.gossip: Gossip | None = None
        """Told of each document before its first request, so that no prompt stays unheard of."""

    def keep_speeds(self, path: Path) -> None:
        """Take what was learned from a file and write it there; call it before the start."""
        self._speeds = SpeedsFile(self.state, path)

    def start_background(self) -> None:
        """Begin what follows the documents; call it inside the loop."""
        self.state.directory.on_change = self._follow_documents
        self._follow_documents()

    def _follow_documents(self) -> None:
        self._scraper.follow_documents()
        self._warmer.follow_documents()
        self._drainer.follow_documents()
        self._tokenisers.follow_documents()
        self.events.follow_documents()
        if self._speeds:
            self._speeds.follow_documents()
        if self.gossip:
            self.gossip.follow_documents()

    async def stop_serving(self, public: HttpServer) -> None:
        """Let requests end, on every port."""
        self.state.is_draining = True
        await asyncio.gather(
            public.stop(drain_seconds=self.drain_seconds),
            self.faces.stop(drain_seconds=self.drain_seconds),
        )

    async def stop_background(self) -> None:
        """End it; requests have ended before."""
        for close in self.state.closers:
            close()
        await self._scraper.stop()
        await self._warmer.stop()
        await self._drainer.stop()
        await self._tokenisers.stop()
        await self.events.stop()
        if self._speeds:
            await self._speeds.stop()
        self.state.upstreams.close()


def public_server(state: RouterState, make: type[Server]) -> Server:
    """The inference port of a process, not yet listening."""
    public = PublicPort(state)
    return make(
        public,
        limits=ServerLimits(body_bytes=lambda: state.directory.body_bytes, gate=public.gate),
        error_body=openai_error_body,
    )


def public_port(server: HttpServer) -> PublicPort:
    """What answers on the inference port."""
    return cast(PublicPort, server.handler)


class Router(Serving):
    """One router in one process: two ports, a scraper and a spool around the loaded documents."""

    def __init__(self, options: RouterOptions) -> None:
        self._options = options
        self._spool = UsageSpool(
            options.state_dir / "usage",
            router=options.name,
            max_bytes=options.spool_bytes,
            segment_seconds=options.segment_seconds,
        )
        super().__init__(
            name=options.name,
            directory=Directory(options.state_dir / "documents", router_name=options.name),
            spool=self._spool,
            decisions=DecisionRing(),
            drain_seconds=options.drain_seconds,
            tokenizers_dir=options.tokenizers,
        )
        self.keep_speeds(options.state_dir / "speeds.json")
        admin = AdminPort(self.state, spool=self._spool, token=options.admin_token)
        self._public = public_server(self.state, HttpServer)
        self._admin = HttpServer(
            admin,
            limits=ServerLimits(
                body_bytes=lambda: ADMIN_BODY_BYTES, gate=admin.gate, connections=256
            ),
            error_body=problem_body,
        )
        self._gossip: Gossip | None = None
        self._peer_port: PeerPort | None = None
        if options.peering:
            self._peer_port = options.peering.port(
                hear=self._hear, count=lambda result: self.state.metrics.gossip.labels(result).inc()
            )
            gossip = Gossip(self.state, node=options.name, post=self._peer_port.post)
            self.gossip = self._gossip = gossip
        self.port = self.admin_port = self.gossip_port = 0
        self.face_ports: list[Opened] = []
        """Of each process; here of one."""

    def _hear(self, packet: bytes) -> None:
        if self._gossip:
            self._gossip.hear(packet)

    async def start(self) -> None:
        """Load the last good documents and open both ports. Raises OSError for a busy port."""
        self.state.directory.load_kept()
        self.port = await self._public.start(self._options.host, self._options.port)
        self.admin_port = await self._admin.start(
            self._options.host, self._options.admin_port, self._options.admin_certificate
        )
        if self._peer_port and self._gossip and self._options.peering:
            self.gossip_port = await self._peer_port.start(
                self._options.peering.host, self._options.peering.gossip_port
            )
            self._gossip.start()
        self.face_ports = [await self.faces.start(self._options.host, self._options.faces)]
        self.start_background()

    async def stop(self) -> None:
        """Let running requests end, then write what is left; the admin port goes last."""
        await self.stop_serving(self._public)
        await self.stop_background()
        if self._gossip and self._peer_port:
            self._gossip.stop()
            await self._peer_port.stop()
        self._spool.close()
        await self._admin.stop(drain_seconds=0.5)
