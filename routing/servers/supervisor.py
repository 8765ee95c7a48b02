"""Several serving processes as one router: their parent, which serves no request itself.

It accepts connections and hands each to the process that has the fewest, so that a gateway's few
kept-alive connections spread evenly and a killed process takes none of the waiting ones with it. It
owns the admin port, the documents on disk and the usage spool: one number sequence per router. A
process that dies is started again, ever slower if it keeps dying. When the supervisor itself dies,
the processes end with it.
"""

import asyncio
import contextlib
import logging
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routing.core.document import encode_document
from routing.core.peer_messages import Packet, encode
from routing.core.usage import UsageEvent
from routing.servers import clock
from routing.servers.channel import (
    Beat,
    Channel,
    Hello,
    Kind,
    Question,
    Reply,
    RingLine,
    pack,
    unpack,
)
from routing.servers.decisions import DecisionRing, Line
from routing.servers.errors import ApiError
from routing.servers.faces.ports import NO_FACES, FaceOptions, Opened
from routing.servers.lives import Life, NoAnswerError
from routing.servers.merging import Page, retire
from routing.servers.shelf import Shelf
from routing.servers.spool import UsageSpool
from routing.servers.state import RequestCounts

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""A process that lived so long starts again without a pause."""
GRACE_SECONDS = 4.0
"""Beyond the drain, until a process that does not end is killed."""
EXIT_SECONDS = 2.0
"""From a process's last word to its exit, until it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """What is the same for all processes."""

    name: str
    """Name of the router."""
    processes: int
    state_dir: Path
    tokenizers_dir: Path
    drain_seconds: float
    host: str = "127.0.0.1"
    faces: FaceOptions = NO_FACES
    """Ports for gateways of the first process; those of the others follow."""
    inherited: tuple[int, ...] = ()
    """Open files that live as long as any process, such as the lock of the state folder."""


class Fleet:
    """The serving processes of a router, kept alive."""

    def __init__(self, options: FleetOptions, *, shelf: Shelf, spool: UsageSpool) -> None:
        self.name = options.name
        self.processes = options.processes
        self.shelf = shelf
        self.spool = spool
        self.ring = DecisionRing()
        self.lives: dict[int, Life] = {}
        self.face_ports: dict[int, Opened] = {}
        """Ports for gateways by process; one that starts again opens the same."""
        self.restarts = 0
        self.retired: Page = {}
        self.is_draining = False
        self.to_other_routers: Callable[[bytes], None] = _nowhere
        self.on_change: Callable[[], None] = _nothing
        """Called when a process became ready or was lost."""
        self.welcome: Callable[[Life], Awaitable[None]] = _welcome
        """Called when a process is up, before it gets connections."""
        self._options = options
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended_counts = RequestCounts()
        self._keepers: list[asyncio.Task[None]] = []
        self._packets = 0

    # Lives.

    async def start(self, *, seconds: float) -> None:
        """Start all processes; returns when each serves. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        self._keepers = [loop.create_task(self._keep(number)) for number in range(self.processes)]
        async with asyncio.timeout(seconds):
            while len(self.ready) < self.processes:
                await asyncio.sleep(0.02)

    @property
    def ready(self) -> list[Life]:
        """Processes that serve, by number."""
        return [life for _, life in sorted(self.lives.items()) if life.is_ready]

    async def _keep(self, number: int) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self.is_draining:
            begun = clock.monotonic()
            try:
                status = await self._live(number)
                if not self.is_draining:
                    logger.error("Process %d ended with status %s.", number, status)
            except OSError as error:
                logger.error("Process %d cannot be started: %s", number, error)  # noqa: TRY400 - the sentence is the whole story
            if self.is_draining:
                return
            self.restarts += 1
            is_steady = clock.monotonic() - begun >= STEADY_SECONDS
            pause = FIRST_PAUSE_SECONDS if is_steady else min(2 * pause, LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def _live(self, number: int) -> int:
        """One life from start to end; returns the exit status."""
        giving, orders = socket.socketpair()
        reading, reports = socket.socketpair()
        handing, taking = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with orders, reports, taking:
            given = [end.fileno() for end in (orders, reports, taking)]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "routing.servers.child"),
                *("--orders", str(given[0]), "--reports", str(given[1])),
                *("--connections", str(given[2])),
                *("--log-level", logging.getLevelName(logging.getLogger().level).lower()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(*given, *self._options.inherited),
            )
        life = self.lives[number] = Life(number, process)
        handing.settimeout(0)
        life.handing = handing
        life.channel = await Channel.open(giving, on_frame=_ignore, on_lost=_nothing)
        life.given = frozenset(kept.sha256 for kept in self.shelf.kept.values())
        life.drained = frozenset(self.shelf.drained)
        life.channel.send(Kind.HELLO, pack(self._hello(number)))
        await Channel.open(
            reading,
            on_frame=lambda kind, payload: self._take_frame(life, kind, payload),
            on_lost=life.end,
        )
        await life.lost.wait()
        status = await _ended(process)
        self._forget(life)
        return status

    def _hello(self, number: int) -> Hello:
        return Hello(
            name=self.name,
            number=number,
            processes=self.processes,
            state_dir=str(self._options.state_dir),
            drain_seconds=self._options.drain_seconds,
            tokenizers_dir=str(self._options.tokenizers_dir),
            documents=[encode_document(kept.document) for kept in self.shelf.kept.values()],
            drained=sorted(self.shelf.drained),
            host=self._options.host,
            faces=self._options.faces.of_process(number).again(self.face_ports.get(number, {})),
        )

    def _forget(self, life: Life) -> None:
        """Keep what an ended process had counted, and tell everybody that its leases are over."""
        self.lives.pop(life.number, None)
        retire(self.retired, life.page)
        if life.beat:
            _count(self._ended_counts, life.beat)
            for pool in self.shelf.kept:
                self._packets += 1
                farewell = Packet(
                    node=f"{self.name}/{life.number}",
                    epoch=life.beat.epoch,
                    number=self._packets,
                    pool=pool,
                    is_last=True,
                )
                packet = encode(farewell)
                self._pass_on(life, Kind.GOSSIP, packet)
                self.to_other_routers(packet)
        self.on_change()

    async def stop(self) -> None:
        """Let every process finish what runs, then end."""
        self.is_draining = True
        lives = list(self.lives.values())
        for life in lives:
            if life.channel:
                life.channel.send(Kind.DRAIN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.drain_seconds + GRACE_SECONDS):
                await asyncio.gather(*(life.lost.wait() for life in lives))
        for life in lives:
            if not life.lost.is_set():
                logger.error("Process %d did not end in time and is killed.", life.number)
                _kill(life.process)
        if self._keepers:
            # A process that outlives this one would keep the state folder from the next router.
            _, late = await asyncio.wait(self._keepers, timeout=2 * EXIT_SECONDS)
            for keeper in late:
                keeper.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # What processes say.

    def _take_frame(self, life: Life, kind: int, payload: bytes) -> None:
        if kind == Kind.USAGE:
            self._take_usage(unpack(payload, list[UsageEvent]))
        elif kind == Kind.GOSSIP:
            self._pass_on(life, Kind.GOSSIP, payload)
            self.to_other_routers(payload)
        elif kind == Kind.EVENTS:
            self._pass_on(life, Kind.EVENTS, payload)
        elif kind == Kind.LINE:
            line: RingLine = unpack(payload, RingLine)
            self.ring.adopt(Line(*(getattr(line, name) for name in Line._fields)))
        elif kind == Kind.ASK:
            self._start(self._ask_for(life, unpack(payload, Question)))
        elif kind == Kind.ANSWER:
            life.take_reply(unpack(payload, Reply))
        elif kind in (Kind.READY, Kind.BEAT):
            self._take_beat(life, unpack(payload, Beat))

    def _take_usage(self, events: list[UsageEvent]) -> None:
        for event in events:
            self.spool.append(event)

    def _take_beat(self, life: Life, beat: Beat) -> None:
        is_first, life.beat = life.beat is None, beat
        self.face_ports[life.number] = beat.faces
        if is_first:
            self._start(self._make_ready(life))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask_for(self, asker: Life, question: Question) -> None:
        """Pass a question of one process on to another, and its answer back."""
        life = self.lives.get(-1 if question.process is None else question.process)
        try:
            if life is None:
                raise NoAnswerError("There is no such process.")
            status, body = await life.ask(
                question.method,
                question.path,
                query=question.query,
                body=question.body,
                secret=question.secret,
            )
        except NoAnswerError as error:
            status, body = 404, ApiError(404, str(error), code="no-reservation").body()
        if asker.channel:
            reply = Reply(number=question.number, status=status, body=body)
            asker.channel.send(Kind.ANSWER, pack(reply))

    async def _make_ready(self, life: Life) -> None:
        try:
            await self.welcome(life)
        except NoAnswerError as error:
            logger.error("%s It is ended.", error)  # noqa: TRY400 - the sentence is the whole story
            _kill(life.process)
        else:
            life.is_welcome = True
            self.on_change()

    def _pass_on(self, source: Life, kind: Kind, payload: bytes) -> None:
        """Tell all other processes; who is slow misses it."""
        for life in self.lives.values():
            if life is not source and life.channel:
                life.channel.post(kind, payload)

    def hear_other_router(self, packet: bytes) -> None:
        """A packet of another router, for every process."""
        for life in self.lives.values():
            if life.channel:
                life.channel.post(Kind.GOSSIP, packet)

    # What they are as one.

    def requests(self) -> RequestCounts:
        """Answers of all processes, also of those that ended."""
        together = RequestCounts(
            total=self._ended_counts.total,
            failed=self._ended_counts.failed,
            by_status=Counter(self._ended_counts.by_status),
        )
        for life in self.lives.values():
            if life.beat:
                _count(together, life.beat)
        return together

    def complete_until(self) -> float:
        """Unix time; every event that ended before it is with the spool."""
        times = [life.beat.complete_until for life in self.lives.values() if life.beat]
        return min(times, default=clock.unix_now())


def _count(into: RequestCounts, beat: Beat) -> None:
    into.total += beat.total
    into.failed += beat.failed
    into.by_status.update(beat.by_status)


async def _ended(process: asyncio.subprocess.Process) -> int:
    """The exit status; a process that lost its channel but lives is killed."""
    try:
        async with asyncio.timeout(EXIT_SECONDS):
            return await process.wait()
    except TimeoutError:
        _kill(process)
        return await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def _welcome(life: Life) -> None:
    """Nothing has to be done first."""


def _ignore(kind: int, payload: bytes) -> None:
    """Nothing comes on the channel of orders."""


def _nowhere(packet: bytes) -> None:
    """No other router."""


def _nothing() -> None:
    """Nobody listens."""
