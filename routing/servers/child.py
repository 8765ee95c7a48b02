"""One of several serving processes of a router; started by `routing.servers.supervisor`.

    python -m routing.servers.child --orders FD --reports FD --connections FD

It has no port and writes no document: connections, documents and questions of the admin port come
from the supervisor; usage events, decision records and gossip go to it. When the supervisor dies,
it ends at once, as the threads of one killed process would.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from routing.core.document import parse_document
from routing.core.usage import UsageEvent
from routing.servers import calls, clock
from routing.servers.app import Serving, public_port, public_server
from routing.servers.channel import (
    Beat,
    Channel,
    Collected,
    Hello,
    Kind,
    Question,
    Reply,
    RingLine,
    pack,
    unpack,
)
from routing.servers.decisions import DecisionRing, Line
from routing.servers.documents import Directory
from routing.servers.errors import ApiError
from routing.servers.faces.ports import Opened
from routing.servers.gossip import Gossip
from routing.servers.handed import HandedServer
from routing.servers.http_parts import HttpRequest
from routing.servers.questions import Questions
from routing.servers.spool import SpoolState
from routing.servers.start import calm_collector, raise_file_limit

logger = logging.getLogger("routing.servers.child")

BEAT_SECONDS = 0.1
FLUSH_SECONDS = 0.02
"""A killed process loses at most the usage of this window; nobody was told of it."""
MAX_EVENTS_PER_FRAME = 2000
ELSEWHERE_SECONDS = 6.0
LOST = 3
"""Exit status of a process whose supervisor is gone."""


class SentUsage:
    """Usage on its way to the supervisor, which numbers and keeps it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: list[UsageEvent] = []
        self._timer: asyncio.TimerHandle | None = None
        self.dropped_events = 0

    def append(self, event: UsageEvent) -> None:
        """Send an event soon."""
        self._waiting.append(event)
        if len(self._waiting) >= MAX_EVENTS_PER_FRAME:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what waits."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        events, self._waiting = self._waiting, []
        if events and not self._channel.send(Kind.USAGE, pack(events)):
            self.dropped_events += len(events)
            logger.error("The supervisor does not take %d usage events.", len(events))

    def state(self) -> SpoolState:
        """Numbers are the supervisor's; here only what was dropped is known."""
        return SpoolState(
            last_sequence=0,
            closed_through=0,
            pending_segments=0,
            pending_bytes=0,
            complete_until=clock.unix_now(),
            dropped_segments=0,
            dropped_events=self.dropped_events,
        )


class Child(Serving):
    """See the module."""

    def __init__(self, hello: Hello, reports: Channel, connections: socket.socket) -> None:
        self._usage = SentUsage(reports)
        decisions = DecisionRing(seed=hello.number)
        super().__init__(
            name=hello.name,
            directory=Directory(None, router_name=hello.node),
            spool=self._usage,
            decisions=decisions,
            drain_seconds=hello.drain_seconds,
            tokenizers_dir=Path(hello.tokenizers_dir),
        )
        self._hello = hello
        # Each process learns from its own requests; which of them a number gets does not matter.
        self.keep_speeds(Path(hello.state_dir) / f"speeds-{hello.number}.json")
        self._reports = reports
        decisions.on_line = self._pass_line_on
        self.events.collectors.binds = hello.number == 0
        self.events.collectors.pass_on = self._pass_events_on
        self._server = public_server(self.state, HandedServer)
        self._connections = connections
        self._questions = Questions(self.state, public_port(self._server).reservations)
        self._asking: dict[int, asyncio.Future[Reply]] = {}
        self._asked = 0
        self.state.mark = str(hello.number)
        self.state.elsewhere = self._ask_elsewhere
        self.gossip = self._gossip = Gossip(
            self.state,
            node=hello.node,
            post=self._post,
        )
        self._opened: Opened = {}
        self._beat: asyncio.TimerHandle | None = None
        self.ended = asyncio.Event()

    async def start(self) -> None:
        """Serve the documents, then say so. Raises OSError for a busy port of a face."""
        hello = self._hello
        drained = set(hello.drained)
        for raw in hello.documents:
            self.state.directory.install(parse_document(raw), drained=drained)
        self.start_background()
        self._gossip.start()
        self._server.start_handed(self._connections)
        self._opened = await self.faces.start(hello.host, hello.faces)
        self._reports.send(Kind.READY, self._pulse())
        self._tick()

    def _tick(self) -> None:
        self._beat = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._tick)
        self._reports.send(Kind.BEAT, self._pulse())

    def _pulse(self) -> bytes:
        # What is appended after the flush ended after the time that is named.
        self._usage.flush()
        counts = self.state.requests
        return pack(
            Beat(
                complete_until=clock.unix_now(),
                connections=len(self._server.connections),
                taken=self._server.taken,
                epoch=self._gossip.epoch,
                total=counts.total,
                failed=counts.failed,
                by_status=dict(counts.by_status),
                is_draining=self.state.is_draining,
                faces=self._opened,
            )
        )

    def _post(self, packet: bytes) -> None:
        self._reports.post(Kind.GOSSIP, packet)

    def _pass_line_on(self, line: Line) -> None:
        self._reports.post(
            Kind.LINE,
            pack(
                RingLine(
                    number=line.number,
                    decision_id=line.decision_id,
                    pool=line.pool,
                    tenant=line.tenant,
                    kind=line.kind,
                    content=line.content,
                )
            ),
        )

    def _pass_events_on(self, address: str, frames: list[bytes]) -> None:
        self._reports.post(Kind.EVENTS, pack(Collected(address=address, frames=frames)))

    async def _ask_elsewhere(self, mark: str, request: HttpRequest) -> tuple[int, bytes]:
        """Let the supervisor ask another process. Raises ApiError when that does not answer."""
        self._asked = number = self._asked + 1
        question = Question(
            number=number,
            method=request.method,
            path=request.path,
            query=request.query,
            body=request.body,
            secret=calls.secret_of(request.headers),
            process=int(mark),
        )
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asking[number] = answer
        try:
            self._reports.send(Kind.ASK, pack(question))
            async with asyncio.timeout(ELSEWHERE_SECONDS):
                reply = await answer
        except TimeoutError as error:
            message = "The process of this router that holds the reservation does not answer."
            raise ApiError(503, message, retry_after_seconds=1.0) from error
        finally:
            self._asking.pop(number, None)
        return reply.status, reply.body

    def _take_reply(self, reply: Reply) -> None:
        answer = self._asking.get(reply.number)
        if answer and not answer.done():
            answer.set_result(reply)

    def take_frame(self, kind: int, payload: bytes) -> None:
        """A frame of the supervisor, after the first."""
        if kind == Kind.GOSSIP:
            self._gossip.hear(payload)
        elif kind == Kind.EVENTS:
            told = unpack(payload, Collected)
            self.events.collectors.hear(told.address, told.frames)
        elif kind == Kind.ASK:
            reply = self._questions.reply(unpack(payload, Question))
            self._reports.send(Kind.ANSWER, pack(reply))
        elif kind == Kind.ANSWER:
            self._take_reply(unpack(payload, Reply))
        elif kind == Kind.DRAIN:
            self.ended.set()

    async def stop(self) -> None:
        """Finish what runs and tell everything that is known."""
        self.state.is_draining = True
        self._reports.send(Kind.BEAT, self._pulse())
        await self.stop_serving(self._server)
        await self.stop_background()
        self._gossip.stop()
        if self._beat:
            self._beat.cancel()
        self._reports.send(Kind.BEAT, self._pulse())
        self._reports.close()


class _Life:
    """From the first order of the supervisor to the end."""

    def __init__(self, connections: socket.socket) -> None:
        self._connections = connections
        self._hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self._early: list[tuple[int, bytes]] = []
        self._child: Child | None = None

    def _on_order(self, kind: int, payload: bytes) -> None:
        if self._child:
            self._child.take_frame(kind, payload)
        elif kind == Kind.HELLO and not self._hello.done():
            self._hello.set_result(unpack(payload, Hello))
        else:
            self._early.append((kind, payload))

    def _on_lost(self) -> None:
        # Nobody would keep the usage of what is served from here on.
        os._exit(LOST)

    async def run(self, orders: socket.socket, reports: socket.socket) -> None:
        # Two channels, one for each direction: a write to one that has ended would throw away what
        # can still be read from it.
        out = await Channel.open(reports, on_frame=_ignore, on_lost=_nothing)
        await Channel.open(orders, on_frame=self._on_order, on_lost=self._on_lost)
        child = Child(await self._hello, out, self._connections)
        _end_at(signal.SIGTERM, child.ended)
        await child.start()
        self._child = child
        for kind, payload in self._early:
            child.take_frame(kind, payload)
        calm_collector()
        await child.ended.wait()
        await child.stop()
        await out.closed()


def _ignore(kind: int, payload: bytes) -> None:
    """Nothing comes on the channel of reports."""


def _nothing() -> None:
    """The end is noticed on the channel of orders."""


def _end_at(number: signal.Signals, event: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, event.set)
    # Ctrl-C goes to the whole group; the supervisor says when to drain.
    loop.add_signal_handler(signal.SIGINT, lambda: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until the supervisor says so; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m routing.servers.child", description=__doc__)
    parser.add_argument("--orders", type=int, required=True)
    parser.add_argument("--reports", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--log-level", default="info")
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    raise_file_limit()

    async def run() -> None:
        life = _Life(socket.socket(fileno=options.connections))
        orders, reports = (
            socket.socket(fileno=number) for number in (options.orders, options.reports)
        )
        await life.run(orders, reports)

    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
