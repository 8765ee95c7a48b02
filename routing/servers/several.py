"""The composition of a router with several processes, as `app.Router` is of one with one."""

from routing.servers import clock
from routing.servers.app import ADMIN_BODY_BYTES, SOFTWARE, RouterOptions
from routing.servers.dealer import Dealer
from routing.servers.errors import problem_body
from routing.servers.faces.ports import Opened
from routing.servers.front import FrontPort, SharedSpool
from routing.servers.http import HttpServer
from routing.servers.http_parts import ServerLimits
from routing.servers.peer_port import PeerPort
from routing.servers.rollout import Rollout
from routing.servers.shelf import Shelf
from routing.servers.supervisor import Fleet, FleetOptions

START_SECONDS = 60.0


class NotStartedError(Exception):
    """Not every process came up."""


class SeveralRouter:
    """A supervisor with its processes."""

    def __init__(
        self, options: RouterOptions, *, processes: int, inherited: tuple[int, ...] = ()
    ) -> None:
        self._options = options
        self._shelf = Shelf(options.state_dir / "documents")
        self._spool = SharedSpool(
            options.state_dir / "usage",
            router=options.name,
            max_bytes=options.spool_bytes,
            segment_seconds=options.segment_seconds,
        )
        self._fleet = fleet = Fleet(
            FleetOptions(
                name=options.name,
                processes=processes,
                state_dir=options.state_dir,
                tokenizers_dir=options.tokenizers,
                drain_seconds=options.drain_seconds,
                host=options.host,
                faces=options.faces,
                inherited=inherited,
            ),
            shelf=self._shelf,
            spool=self._spool,
        )
        self._spool.fleet = fleet
        self._dealer = Dealer(fleet)
        fleet.on_change = self._dealer.follow_fleet
        front = FrontPort(
            fleet,
            Rollout(fleet),
            token=options.admin_token,
            software=SOFTWARE,
            started_at=clock.unix_now(),
        )
        self._admin = HttpServer(
            front,
            limits=ServerLimits(
                body_bytes=lambda: ADMIN_BODY_BYTES, gate=front.gate, connections=256
            ),
            error_body=problem_body,
        )
        self._peer_port: PeerPort | None = None
        if options.peering:
            self._peer_port = options.peering.port(
                hear=fleet.hear_other_router, count=front.count_packet
            )
            fleet.to_other_routers = self._peer_port.post
        self.port = self.admin_port = self.gossip_port = 0

    @property
    def face_ports(self) -> list[Opened]:
        """Ports for gateways of each process."""
        return [opened for _, opened in sorted(self._fleet.face_ports.items())]

    async def start(self) -> None:
        """Open the ports and start every process. Raises OSError or NotStartedError."""
        options = self._options
        self._shelf.load()
        self.port = self._dealer.start(options.host, options.port)
        self.admin_port = await self._admin.start(
            options.host, options.admin_port, options.admin_certificate
        )
        if self._peer_port and options.peering:
            self.gossip_port = await self._peer_port.start(
                options.peering.host, options.peering.gossip_port
            )
        try:
            await self._fleet.start(seconds=START_SECONDS)
        except TimeoutError as error:
            count = len(self._fleet.ready)
            message = f"After {START_SECONDS:g} s only {count} processes serve."
            raise NotStartedError(message) from error

    async def stop(self) -> None:
        """Let running requests end, then write what is left; the admin port goes last."""
        self._dealer.stop()
        await self._fleet.stop()
        if self._peer_port:
            await self._peer_port.stop()
        self._spool.close()
        await self._admin.stop(drain_seconds=0.5)
