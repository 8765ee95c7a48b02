"""The composition of one router process: made, started and stopped in one place."""

from dataclasses import dataclass
from pathlib import Path

from routing.servers import clock
from routing.servers.admin import AdminPort
from routing.servers.decisions import DecisionRing
from routing.servers.documents import Directory
from routing.servers.errors import openai_error_body, problem_body
from routing.servers.http import HttpServer
from routing.servers.http_parts import ServerLimits
from routing.servers.metrics import RouterMetrics
from routing.servers.public import PublicPort
from routing.servers.scrape import Scraper
from routing.servers.spool import SEGMENT_SECONDS, UsageSpool
from routing.servers.state import RouterState
from routing.servers.upstream import UpstreamPool

SOFTWARE = "0.1.0"
"""Version of the project; a test compares it with pyproject.toml."""
ADMIN_BODY_BYTES = 8 * 1024 * 1024 + 1
"""One more than a document may have, so that the document's own error is given."""


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
    spool_bytes: int = 512 * 2**20
    segment_seconds: float = SEGMENT_SECONDS
    drain_seconds: float = 8.0


class Router:
    """One router: two ports, a scraper and a spool around the loaded documents."""

    def __init__(self, options: RouterOptions) -> None:
        self._options = options
        self.state = state = RouterState(
            name=options.name,
            software=SOFTWARE,
            started_at=clock.unix_now(),
            directory=Directory(options.state_dir / "documents", router_name=options.name),
            spool=UsageSpool(
                options.state_dir / "usage",
                router=options.name,
                max_bytes=options.spool_bytes,
                segment_seconds=options.segment_seconds,
            ),
            upstreams=UpstreamPool(),
            metrics=RouterMetrics(),
            decisions=DecisionRing(),
        )
        self._scraper = Scraper(state)
        public, admin = PublicPort(state), AdminPort(state, token=options.admin_token)
        self._public = HttpServer(
            public,
            limits=ServerLimits(body_bytes=lambda: state.directory.body_bytes, gate=public.gate),
            error_body=openai_error_body,
        )
        self._admin = HttpServer(
            admin,
            limits=ServerLimits(
                body_bytes=lambda: ADMIN_BODY_BYTES, gate=admin.gate, connections=256
            ),
            error_body=problem_body,
        )
        self.port = self.admin_port = 0

    async def start(self) -> None:
        """Load the last good documents and open both ports. Raises OSError for a busy port."""
        self.state.directory.load_kept()
        self.state.directory.on_change = self._scraper.follow_documents
        self.port = await self._public.start(self._options.host, self._options.port)
        self.admin_port = await self._admin.start(self._options.host, self._options.admin_port)
        self._scraper.follow_documents()

    async def stop(self) -> None:
        """Let running requests end, then write what is left; the admin port goes last."""
        self.state.is_draining = True
        await self._public.stop(drain_seconds=self._options.drain_seconds)
        await self._scraper.stop()
        self.state.upstreams.close()
        self.state.spool.close()
        await self._admin.stop(drain_seconds=0.5)
